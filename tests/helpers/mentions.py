"""Check of the facts in a text of the package, whatever its wording."""


def mentions(text, *words):
    """Return True if the text contains these words (names, numbers) in this order."""
    place = 0
    for word in words:
        found = text.find(word, place)
        if found < 0:
            return False
        place = found + len(word)
    return True
