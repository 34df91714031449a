"""Call texts, and data sets opened by them."""

import pytest
from raises import raises

from unweave.data import DATASETS, Digits, load_data
from unweave.data.callspec import call_text, parse_call
from unweave.data.published import FILES
from unweave.errors import check_integer


@pytest.mark.parametrize(
    "text, expected",
    [
        ("none", ("none", {})),
        ("sprites", ("sprites", {})),
        (" sprites() ", ("sprites", {})),
        ("sprites(size=32, antialias=2)", ("sprites", {"size": 32, "antialias": 2})),
        ("pairs(k='uniform')", ("pairs", {"k": "uniform"})),
        ("pairs(k=(1, 3), share=['a', 'b'])", ("pairs", {"k": (1, 3), "share": ["a", "b"]})),
        ("subset(data='rooms(size=8)', where={'a': [1]})", ("subset", {"data": "rooms(size=8)", "where": {"a": [1]}})),
        ("f(a=-1.5, b=(1, 2), c=True, d=None)", ("f", {"a": -1.5, "b": (1, 2), "c": True, "d": None})),
    ],
)
def test_parse(text, expected):
    assert parse_call(text) == expected
    assert parse_call(call_text(*expected)) == expected


@pytest.mark.parametrize(
    "text",
    ["", "3", "a.b", "sprites(", "sprites(32)", "sprites(**{'size': 1})", "sprites(size=size)", "f(a=__import__('os'))"]
    + ["sprites(size=1, size=2)", "a; b", "f(a=1)(b=2)", "sprites\0", "(" * 500],
)
@pytest.mark.parametrize("argument", ["data", "supervision"])
def test_invalid_call(text, argument):
    with raises(argument, value=text):
        parse_call(text, argument)


def test_load_by_name_text_and_object():
    data = load_data("digits(size=16)")
    assert isinstance(data, Digits) and data.shape == (1, 16, 16)
    assert load_data(data) is data
    again = load_data(data.name, **data.options)
    assert again.shape == data.shape and again.info == data.info


@pytest.mark.parametrize(
    "text, options, argument, value",
    [
        ("sprite", {}, "data", "sprite"),
        ("zzz", {}, "data", "zzz"),
        ("sprites(sice=3)", {}, "option", "sice"),
        ("digits", {"antialias": 2}, "option", "antialias"),
        ("digits(size=8)", {"size": 8}, "size", ...),
        ("digits(size='big')", {}, "size", "big"),
        (3, {}, "data", 3),
        (Digits(), {"size": 16}, "data", ...),
    ],
)
def test_load_invalid(text, options, argument, value):
    with raises(argument, value=value):
        load_data(text, **options)


@pytest.mark.parametrize("value", [True, 2.0, "2", None, 0, 9])
def test_check_integer(value):
    with raises("n", value=value, accepted="an integer from 1 to 8"):
        check_integer("n", value, 1, 8)


def test_every_data_set_is_listed_under_its_name(cache):
    for name, kind in DATASETS.items():
        assert kind.__name__.lower() == (name if name in FILES else name.replace("_", ""))
        if name in FILES:  # these need their files
            continue
        options = {"antialias": 2} if name == "sprites" else {"size": 8}  # quickly made
        data = kind(**options)
        assert data.name == name and options.items() <= data.options.items()
