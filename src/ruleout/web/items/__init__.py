"""What is to be labelled, read from a folder of images or a table file.

:func:`read_items` reads either. Names, texts and cells come from strangers: names are refused
where they could mislead a reader, and nothing is opened that is not a plain file inside the folder.
"""

from ruleout.web.items.classlist import read_classes
from ruleout.web.items.folder import image_type, read_folder
from ruleout.web.items.found import Found, Limits, read_gold, read_items
from ruleout.web.items.names import check_name
from ruleout.web.items.rows import read_rows
from ruleout.web.items.tables import read_table

__all__ = [
    "Found",
    "Limits",
    "check_name",
    "image_type",
    "read_classes",
    "read_folder",
    "read_gold",
    "read_items",
    "read_rows",
    "read_table",
]
