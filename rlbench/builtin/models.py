"""Models: what builds policy and critic networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import torch
from torch import nn

if TYPE_CHECKING:
    from torch import Tensor

    from rlbench.types import Vocabulary

State = tuple["Tensor", "Tensor"]  # hidden and cell state, each (layers, B, H)


class LSTMNetwork(nn.Module):
    """Embedding, LSTM and a linear head, as a `rlbench.types.Network`.

    The state after the prompt is all that a completion needs to know of it, so prompts are read
    once, however many completions they have.
    """

    def __init__(self, *, tokens: int, outputs: int, embed: int, hidden: int, layers: int) -> None:
        """Build the layers with torch's default initialisation."""
        super().__init__()
        self.embedding = nn.Embedding(tokens, embed)
        self.lstm = nn.LSTM(embed, hidden, layers, batch_first=True)
        self.head = nn.Linear(hidden, outputs)

    def read(self, prompt_ids: Tensor, prompt_mask: Tensor) -> State:
        """Read prompts (N, P), each up to its own last token."""
        embedded = self.embedding(prompt_ids)  # (N, P, E)
        if bool(prompt_mask.all()):
            state: State = self.lstm(embedded)[1]
            return state
        packed = nn.utils.rnn.pack_padded_sequence(
            embedded, prompt_mask.sum(1).cpu(), batch_first=True, enforce_sorted=False
        )
        ragged: State = self.lstm(packed)[1]
        return ragged

    def spread(self, state: State, group_size: int) -> State:
        """Repeat each row group_size times: (layers, N * G, H)."""
        hidden, cell = state
        return hidden.repeat_interleave(group_size, 1), cell.repeat_interleave(group_size, 1)

    def output(self, state: State) -> Tensor:
        """The head's view of the last layer's hidden state: (B, outputs)."""
        said: Tensor = self.head(state[0][-1])
        return said

    def step(self, token: Tensor, state: State) -> tuple[Tensor, State]:
        """Read one token (B,) and give the output after it: (B, outputs)."""
        _, state = self.lstm(self.embedding(token[:, None]), state)
        return self.output(state), state

    def run(self, state: State, completion_ids: Tensor) -> Tensor:
        """Outputs before each completion token, in one pass: (B, T, outputs)."""
        seen = state[0][-1][:, None]  # (B, 1, H)
        if completion_ids.shape[1] > 1:  # an LSTM refuses a sequence without tokens
            rest, _ = self.lstm(self.embedding(completion_ids[:, :-1]), state)  # (B, T - 1, H)
            seen = torch.cat([seen, rest], dim=1)
        said: Tensor = self.head(seen)
        return said


class LSTM:
    """An LSTM language model: embedding, LSTM and a linear head, with torch's initialisation.

    The critic is a network of its own. It starts with the embedding and the LSTM of the base
    policy, and says 0 everywhere. A prompt is read once for all of its completions, since the state
    after it is all that they need to know.
    """

    def __init__(
        self,
        *,
        embed: Annotated[int, "[1, 65536]"] = 64,
        hidden: Annotated[int, "[1, 65536]"] = 128,
        layers: Annotated[int, "[1, 64]"] = 1,
    ) -> None:
        """Choose the size.

        Args:
            embed: Width of the embedding, usually 16 to 256.
            hidden: Width of each LSTM layer, usually 32 to 512.
            layers: LSTM layers, usually 1 or 2.
        """
        self._size = {"embed": embed, "hidden": hidden, "layers": layers}

    def policy(self, vocabulary: Vocabulary) -> LSTMNetwork:
        """Build a policy: one logit for each token."""
        size = len(vocabulary)
        return LSTMNetwork(tokens=size, outputs=size, **self._size)

    def critic(self, vocabulary: Vocabulary, policy: LSTMNetwork) -> LSTMNetwork:
        """Build a critic with the policy's embedding and LSTM and a head that says 0."""
        critic = LSTMNetwork(tokens=len(vocabulary), outputs=1, **self._size)
        critic.embedding.load_state_dict(policy.embedding.state_dict())
        critic.lstm.load_state_dict(policy.lstm.state_dict())
        nn.init.zeros_(critic.head.weight)
        nn.init.zeros_(critic.head.bias)
        return critic
