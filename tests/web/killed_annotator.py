"""Answers questions without end and prints each id once it has been acknowledged."""

from __future__ import annotations

import sys
from uuid import uuid4

from ruleout.web import Reply, Store


def main(url: str, user: int) -> None:
    with Store.open(url) as store:
        print("ready", flush=True)
        while True:
            for question in store.next(user, 2):
                reply = Reply(id=str(uuid4()), kind="no", question=question.id)
                print(store.answer(user, reply).id, flush=True)
                undo = Reply(id=str(uuid4()), kind="undo")
                print(store.answer(user, undo).id, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
