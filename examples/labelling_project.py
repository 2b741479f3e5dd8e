"""A labelling project from Python.

`ruleout label` does all of this on the command line, with a page for people. Here a
program makes the project, answers its questions truthfully, and trains on the
answers. It needs the extra `label`.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from sklearn.datasets import load_iris

import ruleout as ro
from ruleout.learning import read_lesson
from ruleout.web import Reply, Settings
from ruleout.web.items import read_items
from ruleout.web.project import Project

iris = load_iris()
classes = tuple(map(str, iris.target_names))
with TemporaryDirectory() as folder:
    file = Path(folder, "iris.csv")
    rows = ["sepal_length,sepal_width,petal_length,petal_width"]
    rows += [",".join(map(str, row)) for row in iris.data]
    file.write_text("\n".join(rows))

    settings = Settings(classes=classes, law="fixed:1", seed=0)
    found = read_items(file, classes)
    with Project.create(Path(folder, "project"), settings, found, file) as project:
        store = project.store
        ann = store.add_user("Ann")
        numbers = [number for number, _ in store.items()]  # drawn by lot
        truth = dict(zip(numbers, iris.target, strict=True))
        while asked := store.next(ann, count=10):
            for one in asked:
                kind = "yes" if truth[one.item] in one.proposed else "no"
                reply = Reply(id=f"mine-{one.id}", kind=kind, question=one.id)
                store.answer(ann, reply)
        answers = [row.kind for row in store.log()]
        print(f"{len(answers)} answers, {answers.count('no')} of them no")

        lesson = read_lesson(project)
        clf = ro.RuleOutClassifier(learning_rate=0.1, epochs=200, random_state=0)
        clf.fit(lesson.table.x, lesson.target, lesson.weight)
        right = (clf.predict(iris.data) == iris.target_names[iris.target]).mean()
        print(f"right for {100 * right:.0f} % of the {len(iris.data)} flowers")
