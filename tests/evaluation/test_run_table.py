"""Short names of data sets: different for different data, equal for the same."""

from unweave.config.run_config import data_key
from unweave.evaluation.run_table import data_labels


def labels(*pairs):
    return data_labels([call for call, _ in pairs], [digest for _, digest in pairs])


def test_only_options_that_differ_are_named():
    assert labels(("sprites(size=16)", ""), ("rooms", ""), ("sprites(size=16)", "")) == ["sprites", "rooms", "sprites"]
    assert labels(("digits(size=8)", ""), ("digits(size=16)", "")) == ["digits(size=8)", "digits(size=16)"]


def test_folders_have_the_shortest_ends_of_paths_that_differ():
    calls = [f"folder(path='{path}', size=16, factors='t.csv')" for path in ("/a/cats/new", "/a/dogs/new", "/b/birds")]
    assert data_labels(calls, [""] * 3) == ["cats/new", "dogs/new", "birds"]


def test_digests_tell_data_of_one_call_apart():
    assert labels(("arrays", "5-aa-b"), ("arrays", "5-ab-b")) == ["arrays, images aa", "arrays, images ab"]
    assert labels(("arrays", "5-a-b"), ("arrays", "5-a-c"), ("arrays", "")) == [
        "arrays, factors b",
        "arrays, factors c",
        "arrays, without digest",
    ]


def test_the_location_of_data_with_a_digest_of_all_images_does_not_matter():
    here, there = "folder(path='/here', size=16)", "folder(path='/there', size=16)"
    assert data_key(here, "5-a-b") == data_key(there, "5-a-b") and labels((here, "5-a-b"), (there, "5-a-b")) == [
        "folder",
        "folder",
    ]
    for digests in (("", ""), ("5-a-b", "5-a-c"), ("5-a-b-sampled", "5-a-b-sampled")):
        assert data_key(here, digests[0]) != data_key(there, digests[1])
        assert len(set(labels((here, digests[0]), (there, digests[1])))) == 2


def test_names_that_cannot_be_parsed_are_kept():
    assert labels(("my data!", ""), ("rooms", "")) == ["my data!", "rooms"]
