import torch

SEGMENTS = ["abcdef", "bc", "abged", "abgcd", "fgbc", "afgcd", "afgedc", "abc", "abcdefg", "abcfgd"]
PLACES = {
    "a": (1, slice(3, 13)),
    "b": (slice(2, 8), 12),
    "c": (slice(8, 14), 12),
    "d": (14, slice(3, 13)),
    "e": (slice(8, 14), 3),
    "f": (slice(2, 8), 3),
    "g": (8, slice(3, 13)),
}


def draw(count):
    clean = torch.zeros(10, 16, 16)
    for digit, lit in enumerate(SEGMENTS):
        for segment in lit:
            clean[(digit, *PLACES[segment])] = 1
    labels = torch.randint(0, 10, (count,))
    return clean[labels] + 0.4 * torch.randn(count, 16, 16), labels
