"""KL controllers: how much a distance from the reference policy costs.

A controller holds ``coef`` and sees the measured KL once for each rollout batch. ``statistic``
says which number it is shown: the KL summed over a completion and averaged over completions
("sequence"), or averaged over tokens ("token"). A NaN leaves the coefficient as it is. A controller
may also end the optimiser steps of an update early, see `rlbench.builtin.kl.stopping`.
"""
