"""LM: SmolLM2-135M as a decider, typed questions as next-token probabilities; imports questions and lm_model.

A Noul is the probability of ` yes` against ` no`, a Choice the probability of each option's name as the whole answer.
Nothing is calibrated and nothing is trained: the model is weak by design, it shows that the harness holds with a
decider that knows little. Source: M14 §7 (Choice and Noul).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harnesses.desk.decider import LM, Answer, Choice, Noul
from harnesses.desk.lm_model import LanguageModel, smollm2_model
from harnesses.desk.lm_tokens import CLOSES
from harnesses.desk.questions import rendered

SYSTEM = "You work at the front desk of a series of workshops and answer questions about its cases."
YES, NO = " yes", " no"


@dataclass(frozen=True, eq=False)
class Scorer:
    """A decider that reads the answers' probabilities off a language model."""

    language: LanguageModel

    @property
    def name(self) -> str:
        """`lm`."""
        return LM

    @property
    def model(self) -> str:
        """The weights, by the name of their file where they are others than SmolLM2's."""
        return f"{self.language.name} (weak by design, not Jev)"

    def choose(self, question: Choice) -> Answer:
        """The options' probabilities."""
        return self.choose_all([question])[0]

    def noul(self, question: Noul) -> float:
        """The probability of yes."""
        return self.noul_all([question])[0]

    def choose_all(self, questions: Sequence[Choice]) -> list[Answer]:
        """As `choose` of each, up to rounding. Raises DeciderError for a state beyond the model's context."""
        prompts = [self._prompt(_choice_text(question)) for question in questions]
        ends = [[self._answer(option) for option in question.options] for question in questions]
        scores = self.language.log_probabilities(prompts, ends)
        return [
            Answer.likeliest(dict(zip(question.options, map(float, _shares(row)))))
            for question, row in zip(questions, scores)
        ]

    def noul_all(self, questions: Sequence[Noul]) -> list[float]:
        """As `noul` of each, up to rounding. Raises DeciderError for a state beyond the model's context."""
        table = self.language.next_logits([self._prompt(_noul_text(question)) for question in questions])
        words = [self.language.tokenizer.encode(word)[0] for word in (YES, NO)]
        return [float(_shares(row)[0]) for row in table[:, words]]

    def _prompt(self, text: str) -> list[int]:
        """A chat in which the answer is the next word. What all questions of a kind share comes first."""
        tokens = self.language.tokenizer
        asked = [*tokens.turn("system", SYSTEM), *tokens.turn("user", text)]
        return [*asked, *tokens.opening("assistant"), *tokens.encode("Answer:")]

    def _answer(self, option: str) -> list[int]:
        """The option to its end, so that one option may begin another."""
        return [*self.language.tokenizer.encode(f" {option}"), self.language.tokenizer.mark(CLOSES)]


def smollm2() -> Scorer:
    """SmolLM2 as a decider. Raises DeciderError with the remedy where it is not installed."""
    return Scorer(smollm2_model())


def _noul_text(question: Noul) -> str:
    return f"{question.text}\n\n{rendered(question.state)}\n\nAnswer yes or no."


def _choice_text(question: Choice) -> str:
    options = "\n".join(f"{option}: {said}" for option, said in question.options.items())
    names = ", ".join(question.options)
    return f"{question.text}\n\n{options}\n\n{rendered(question.state)}\n\nAnswer with one of {names}."


def _shares(scores: np.ndarray) -> np.ndarray:
    """Log-weights [N] as probabilities that sum to 1, in float64."""
    weights = np.exp(np.asarray(scores, dtype=np.float64) - np.max(scores))
    return weights / weights.sum()
