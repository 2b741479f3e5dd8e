"""Texts.

scikit-learn turns texts into numbers, and a pipeline keeps both steps together. The
texts are real: what Python says of its own functions. The question is which module
a text is about.
"""

import importlib
import inspect

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

import ruleout as ro

MODULES = ("asyncio", "logging", "math", "os", "random", "statistics")
found = {}
for place, name in enumerate(MODULES):
    for word, function in inspect.getmembers(
        importlib.import_module(name), callable
    ):
        if not word.startswith("_") and inspect.getdoc(function):
            found[inspect.getdoc(function)] = place
texts, truth = np.array(list(found)), np.array(list(found.values()))
train, test = ro.selection.split(len(texts), 0.25, seed=0)

sets = ro.draw(truth[train], classes=MODULES, seed=0)
model = make_pipeline(
    TfidfVectorizer(sublinear_tf=True, max_features=2000),
    ro.RuleOutClassifier(learning_rate=0.1, epochs=30, random_state=0),
)
model.fit(texts[train], sets)
right = model.predict(texts[test]) == np.array(MODULES)[truth[test]]
print(f"{len(texts)} texts, {sets.sizes.mean():.1f} of 6 modules ruled out each")
print(f"right on {100 * right.mean():.0f} % of {len(test)} other texts")
print(model.predict(["Delete a file from a folder.", "Wait for the task to end."]))
