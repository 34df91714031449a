"""Files as MNIST's with few pictures: a white square for each digit, at a place of its own.

The last row of an image has its number as bits that are nearly black, so that no two images are equal.
"""

import struct

import numpy as np

NAMES = ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte")


def write_mnist(folder, train=3000, test=40):
    folder.mkdir()
    for count, (images, labels) in ((train, NAMES[:2]), (test, NAMES[2:])):
        digits = np.arange(count, dtype=np.uint8) % 10
        pixels = np.zeros((count, 28, 28), np.uint8)
        for digit in range(10):
            top, left = 12 * (digit // 5), 5 * (digit % 5)
            pixels[digits == digit, top : top + 6, left : left + 5] = 255
        pixels[:, 27, :16] = (np.arange(count)[:, None] + 1 + (count == test) * 2**15) >> np.arange(16) & 1
        (folder / images).write_bytes(struct.pack(">BBBB3I", 0, 0, 8, 3, count, 28, 28) + pixels.tobytes())
        (folder / labels).write_bytes(struct.pack(">BBBBI", 0, 0, 8, 1, count) + digits.tobytes())
    return folder
