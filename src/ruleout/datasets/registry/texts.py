"""Text: four tables of the UCI and KEEL repositories, and the documents of 20 newsgroups."""

from __future__ import annotations

from ruleout.datasets.registry.kinds import DataFile, NewsSet, TableSet

__all__ = ["NEWS", "TABLES"]

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases/"

TABLES = {
    "yeast": TableSet(
        file=DataFile(
            "uci",
            "yeast.data",
            "9e05d6ffade2900ebc71ad7ab25ffca17315b5add8eddb584bc38d6a9aa1156a",
            _UCI + "yeast/yeast.data",
            1 << 18,
            (1484, 10),
        ),
        classes=("CYT", "ERL", "EXC", "ME1", "ME2", "ME3", "MIT", "NUC", "POX", "VAC"),
        source="Yeast (Nakai 1996), the UCI file; eight features as they stand there.",
        first=1,
    ),
    "texture": TableSet(
        file=DataFile(
            "uci",
            "texture.zip",
            "6e2e06ccf0da12bebed463df55bafddd3ae1d37ccbd23c4bbbe597d5d5445ae3",
            "https://sci2s.ugr.es/keel/dataset/data/classification/texture.zip",
            1 << 21,
            (5500, 41),
            ("texture.dat",),
        ),
        classes=(2, 3, 4, 6, 7, 8, 9, 10, 12, 13, 14),
        source="Texture (Guérin-Dugué et al. 1995, ELENA), the KEEL file; 40 features as they "
        "stand there.",
        comma=True,
    ),
    "dermatology": TableSet(
        file=DataFile(
            "uci",
            "dermatology.data",
            "455eba77f72cd087ce54a5a266c514c5f34e85000c8689ad09e796d68ad45742",
            _UCI + "dermatology/dermatology.data",
            1 << 17,
            (366, 35),
        ),
        classes=(1, 2, 3, 4, 5, 6),
        source="Dermatology (Ilter and Guvenir 1998), the UCI file; 34 features as they stand "
        "there, the 8 missing ages filled with the mean of the others.",
        comma=True,
        missing=33,
    ),
    "synthetic-control": TableSet(
        file=DataFile(
            "uci",
            "synthetic_control.data",
            "97e1cbbd6a6da230f8c5da645174b67257e47668cd0c2041cd1f61209e507ed5",
            _UCI + "synthetic_control-mld/synthetic_control.data",
            1 << 20,
            (600, 60),
        ),
        classes=(
            *("normal", "cyclic", "increasing trend"),
            *("decreasing trend", "upward shift", "downward shift"),
        ),
        source="Synthetic Control (Alcock and Manolopoulos 1999), the UCI file; 60 points in time "
        "as they stand there.",
        labelled=False,
    ),
}

NEWS = NewsSet(
    archive=DataFile(
        "20newsgroups",
        "20news-bydate.tar.gz",
        "",  # checked by its structure: copies differ in line breaks
        "http://qwone.com/~jason/20Newsgroups/20news-bydate.tar.gz",
        1 << 26,
        also=("20news-bydate.tar.xz", "20news-bydate.tar"),
    ),
    parts={"20news-bydate-test": 7532, "20news-bydate-train": 11314},
    features=1000,
    classes=(
        "alt.atheism",
        "comp.graphics",
        "comp.os.ms-windows.misc",
        "comp.sys.ibm.pc.hardware",
        "comp.sys.mac.hardware",
        "comp.windows.x",
        "misc.forsale",
        "rec.autos",
        "rec.motorcycles",
        "rec.sport.baseball",
        "rec.sport.hockey",
        "sci.crypt",
        "sci.electronics",
        "sci.med",
        "sci.space",
        "soc.religion.christian",
        "talk.politics.guns",
        "talk.politics.mideast",
        "talk.politics.misc",
        "talk.religion.misc",
    ),
    source="20 Newsgroups (Lang 1995), the version sorted by date: all documents with their "
    "headers, tf-idf and TruncatedSVD to 1000 dimensions fitted on all of them",
)
