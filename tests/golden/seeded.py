"""Seeded random inputs which have the same bits everywhere.

RandomState is the generator whose stream NumPy promises never to change. Only its uniform numbers
are used, and only additions and multiplications are done with them, so no mathematical library
has a say in the last bit.
"""

import numpy


def generator(seed):
    return numpy.random.RandomState(seed)


def bell(random, shape):
    """Bell-shaped numbers with mean 0 and standard deviation 1, all within -3.5 .. 3.5."""
    total = numpy.zeros(shape)
    for _ in range(4):
        total = total + random.random_sample(shape)
    return (total - 2.0) * 1.7320508075688772


def spread(random, shape, low, high):
    """Uniform numbers from low to high."""
    return low + (high - low) * random.random_sample(shape)
