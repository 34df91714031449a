"""Every kind of supervision in the list: its declaration, texts, batches and errors."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageOps
from raises import raises

from unweave.config import RunConfig
from unweave.contract import Batch
from unweave.data import Sampler, explain, load_data, parse_supervision
from unweave.data.callspec import call_text, parse_call
from unweave.data.supervision import SUPERVISION_KINDS
from unweave.data.supervision.sampler import IMAGE_FIELDS
from unweave.errors import UserError

PAGES = Path(__file__).resolve().parents[2] / "docs/reference/supervision"
BATCH = 6


def module_name(kind):
    return kind.__module__.rpartition(".")[2]


every_kind = pytest.mark.parametrize("kind", SUPERVISION_KINDS, ids=module_name)
every_supervised = pytest.mark.parametrize("kind", [k for k in SUPERVISION_KINDS if k.batch_fields], ids=module_name)


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    """A folder `images` and a file `pairs.csv`, for kinds that read files of the user."""
    monkeypatch.setenv("UNWEAVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "images").mkdir()
    for number in range(8):
        ImageOps.expand(Image.new("L", (14, 14), 30 * number), 1).save(tmp_path / "images" / f"{number}.png")
    rows = [f"{number}.png,{number + 1}.png,{('content', 'style')[number % 2]}" for number in range(7)]
    (tmp_path / "pairs.csv").write_text("\n".join(rows))


def example(kind):
    """The example data of the kind, and a text for them."""
    data = load_data(kind.example_data)
    return data, kind.example(data) or kind.syntax


def make_sampler(kind, seed=0):
    data, text = example(kind)
    fields = parse_supervision(text, data).provided_fields
    return Sampler(data, tuple(dict.fromkeys(["x", "x_other", "x_index", *fields])), text, seed=seed)


def tensors(batch):
    return {name: value for name, value in batch._asdict().items() if value is not None}


# --- the declaration -------------------------------------------------------------------------------------------------


@every_kind
def test_declaration_is_complete(kind):
    assert getattr(kind, "__final__", False) and kind.__dataclass_params__.frozen
    assert module_name(kind) == re.sub(r"(?<!^)(?=[A-Z])", "_", kind.__name__).lower(), "one file per kind"
    assert kind.name.isidentifier() and kind.syntax.startswith(kind.name) and kind.__doc__
    assert all(keyword.isidentifier() and help for keyword, help in kind.keywords.items())
    assert set(kind.batch_fields) <= set(Batch._fields)
    assert set(parse_call(kind.syntax)[1]) <= set(kind.keywords)


@every_supervised
def test_page_names_keywords_and_batch_fields(kind):
    text = (PAGES / f"{kind.name}.md").read_text()
    assert text.startswith(f"# {kind.name}\n") and kind.syntax in text
    assert all(f"`{word}`" in text for word in (*kind.keywords, *kind.batch_fields))


# --- texts -----------------------------------------------------------------------------------------------------------


@every_kind
def test_text_round_trip(kind):
    data, text = example(kind)
    supervision = parse_supervision(text, data)
    assert type(supervision) is kind and parse_supervision(supervision, data) is supervision
    again = parse_supervision(supervision.text, data)
    assert again == supervision and again.text == supervision.text
    name, options = parse_call(supervision.text)
    assert parse_supervision(call_text(name, options), data) == supervision


@every_kind
def test_json_round_trip(kind):
    data, text = example(kind)
    supervision = parse_supervision(text, data)
    config = RunConfig("vae", {}, {}, data.name, data.options, {}, supervision=supervision.text)
    stored = json.loads(json.dumps(config.to_json()))
    assert parse_supervision(RunConfig.from_json(stored).supervision, data) == supervision


@every_kind
def test_explanation_is_one_line(kind):
    data, text = example(kind)
    sentence = explain(text, data)
    assert sentence.endswith(".") and "\n" not in sentence


@every_kind
def test_invalid_keywords(kind):
    data, text = example(kind)
    name, options = parse_call(text)
    with raises("option", value="no_keyword", accepted=kind.keywords):
        parse_supervision(call_text(name, {**options, "no_keyword": 1}), data)
    for keyword in kind.keywords:
        with pytest.raises(UserError) as error:
            parse_supervision(call_text(name, {**options, keyword: {}}), data)
        assert error.value.argument == keyword and "\n" not in str(error.value)


# --- batches ---------------------------------------------------------------------------------------------------------


@every_kind
def test_batch_fields_and_shapes(kind):
    sampler = make_sampler(kind)
    found = tensors(sampler(torch.tensor(1), BATCH))
    assert set(found) == set(sampler.needs) and set(kind.batch_fields) <= set(found)
    for name, value in found.items():
        assert len(value) == BATCH
        if name in IMAGE_FIELDS:
            assert value.shape[-3:] == sampler.data.shape and value.dtype == torch.float32
        else:
            assert value.dtype == torch.int64


@every_kind
def test_same_key_and_seed_same_batch(kind):
    one, again = (make_sampler(kind, seed=3).plan(torch.tensor(5), BATCH) for _ in range(2))
    other = make_sampler(kind, seed=3).plan(torch.tensor(6), BATCH)
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


@every_kind
def test_a_fleet_draws_the_batches_of_single_runs(kind):
    shared, seeds = make_sampler(kind), (0, 7)
    names = tuple(shared.plan(torch.tensor(0), BATCH))

    def draw(key, seed):
        plan = shared.plan(key, BATCH, seed)
        return tuple(plan[name] for name in names)

    fleet = torch.vmap(draw)(torch.tensor([11, 12]), torch.tensor(seeds))
    for run, (key, seed) in enumerate(zip((11, 12), seeds)):
        single = make_sampler(kind, seed=seed).plan(torch.tensor(key), BATCH)
        assert all(torch.equal(values[run], single[name]) for name, values in zip(names, fleet))


@every_kind
def test_indices_are_in_range(kind):
    sampler = make_sampler(kind)
    plan = sampler.plan(torch.tensor(2), 200)
    for name in set(plan) & set(IMAGE_FIELDS):
        assert int(plan[name].min()) >= 0 and int(plan[name].max()) < sampler.data.size
    assert np.unique(plan["x"].numpy()).size > 1


# --- needs of methods ------------------------------------------------------------------------------------------------


@every_supervised
def test_missing_and_unused_supervision(kind):
    data, text = example(kind)
    with raises("supervision", value="none"):
        Sampler(data, ("x", *kind.batch_fields), "none")
    with raises("supervision", value=parse_supervision(text, data).text, accepted="none"):
        Sampler(data, ("x", "x_other"), text)
