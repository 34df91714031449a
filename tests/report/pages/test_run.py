"""The report of runs: self-contained, complete, escaped, robust against missing numbers."""

import html
import json
import math
import re
import shutil

import numpy as np
import pytest
from mentions import mentions
from PIL import Image
from raises import raises

import unweave as uw
from unweave.contract import Representation
from unweave.errors import UserError
from unweave.evaluation.evaluate import Evaluation
from unweave.metrics import METRICS
from unweave.report import report, save_samples, traversal_png
from unweave.report.charts.curves import chart_grid, read_curves
from unweave.report.charts.svg import ticks
from unweave.report.formatting import format_number, short
from unweave.report.images import to_pixels
from unweave.report.information import adjusted_information, latent_order
from unweave.report.pages.run import comparison_sentences, run_labels, training_time
from unweave.report.panels.differences import differences
from unweave.report.panels.traversals import findings


def tiny(folder, method="beta_vae", **settings):
    options = {"net": "small", "latents": 3, "steps": 3, "batch": 4, "log_every": 1, "device": "cpu", **settings}
    return uw.train(method, "digits(size=8)", out=folder, **options)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    tiny(root / "first")
    tiny(root / "second", beta=16, seed=1, lr=1e-3)
    return root


@pytest.fixture(scope="module")
def page(runs):
    return report([runs / "first"], runs / "one.html").read_text()


def visible(page):
    """The page's text, without tags and with single spaces."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", body)))


def fake_result(information, kl, scores=None):
    information = np.asarray(information, dtype=float)
    names = tuple(f"f{k}" for k in range(information.shape[1]))
    scores = {"mig": 0.5, "factor_vae": 0.5} if scores is None else scores
    return Evaluation(scores, names, information, np.ones(len(names)), np.asarray(kl, dtype=float), 10, 0)


# --- the page ------------------------------------------------------------------------------------------------------


def test_page_is_self_contained(page):
    addresses = re.findall(r"""(?:src|href|srcset|action)\s*=\s*["']?([^"'\s>]+)""", page)
    assert addresses
    assert all(a.startswith(("data:image/png;base64,", "#")) for a in addresses)
    assert not re.search(r"https?://|@import|url\(|<script|<link", page)


def test_page_shows_summary_scores_latents_and_command(runs, page):
    assert "s on CPU" in page
    text = visible(page)
    scores = json.loads((runs / "first" / "scores.json").read_text())["scores"]
    assert mentions(text, "beta-VAE", "digits", "8 × 8", "3 steps", "4 images", "seed 0")
    assert " ".join(uw.load(runs / "first").config.command()) in text
    for name, value in scores.items():
        assert f"{METRICS[name].title} {format_number(value)}" in text
        assert METRICS[name].description in text
    for latent in ("z0", "z1", "z2"):
        assert re.search(rf'alt="{latent} moved from', page)
    assert "reconstruction" in text
    assert page.count("<svg") == 3


def test_a_batch_counts_what_the_supervision_provides(tmp_path):
    tiny(tmp_path / "run", "ml_vae", supervision="groups(by=['digit'], size=2)")
    assert "4 groups" in visible(report([tmp_path / "run"], tmp_path / "page.html").read_text())


def test_images_are_valid_png(page):
    import base64
    import io

    for text in re.findall(r'src="data:image/png;base64,([^"]+)"', page):
        image = Image.open(io.BytesIO(base64.b64decode(text)))
        assert image.mode == "LA"
        assert image.size == (9 * 32 + 8, 32)


def test_several_runs_are_compared_on_top(runs):
    page = report([runs / "first", uw.load(runs / "second")], runs / "two.html").read_text()
    text = visible(page)
    assert mentions(text, "beta-VAE, beta 4", "beta-VAE, beta 16") and "digits" in text
    assert page.count("<article") == 2
    assert 'href="#run1"' in page
    assert 'class="curve run0"' in page
    assert 'class="curve run1"' in page
    assert page.index("traversal") < page.index("<article")


def test_only_the_most_informative_latents_are_expanded(tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.evaluation.evaluate.ACTIVE_THRESHOLD", -1.0)
    page = report([tiny(tmp_path / "many", latents=15)], tmp_path / "r.html").read_text()
    shown, folded = page.split('<details class="collapsed">')[0], page.split('<details class="collapsed">')[1]
    assert shown.count("moved from") == 12 * 3  # each from three images
    assert folded.partition("</details>")[0].count("moved from") == 3


def test_large_pages_show_each_latent_once(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.evaluation.evaluate.ACTIVE_THRESHOLD", 0.0)
    monkeypatch.setattr("unweave.report.pages.run.MAX_VALUES", 1)
    page = report([runs / "first", runs / "second"], tmp_path / "r.html").read_text()
    assert len(re.findall(r'alt="z\d moved', page)) == 6


def test_hostile_names_are_escaped(runs, tmp_path):
    folder = tmp_path / "<script>alert(1)<"
    shutil.copytree(runs / "first", folder)
    config = json.loads((folder / "config.json").read_text())
    config["versions"]["git"] = "<img src=x onerror=alert(2)>"
    (folder / "config.json").write_text(json.dumps(config))
    page = report([folder, folder], tmp_path / "r.html", title='"><script>alert(3)</script>').read_text()
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(3)" in page


def test_inactive_latents_are_collapsed(runs, tmp_path, monkeypatch):
    monkeypatch.setattr("unweave.evaluation.evaluate.ACTIVE_THRESHOLD", 1e9)
    page = report([runs / "first"], tmp_path / "r.html").read_text()
    assert "3 inactive latents: z" in visible(page)
    assert page.count('class="row inactive"') == 3
    assert "0 of 3" in visible(page)
    assert traversal_png(uw.load(runs / "first")).startswith(b"\x89PNG")  # a picture all the same


def test_missing_numbers_are_dashes(runs, tmp_path, monkeypatch):
    folder = tmp_path / "broken"
    shutil.copytree(runs / "first", folder)
    with open(folder / "log.jsonl", "a") as log:
        log.write('{"stage": 0, "step": 4, "loss": NaN, "recon": Infinity, "only_nan": NaN}\n')
    nothing = fake_result(np.full((3, 1), math.nan), [math.nan] * 3, {"mig": math.nan})
    monkeypatch.setattr("unweave.report.views.evaluate", lambda *a, **k: nothing)
    page = report([folder, folder], tmp_path / "r.html").read_text()
    assert "nan" not in visible(page).replace("NaN", "nan").split("config.json")[0].lower()
    assert "only nan" not in page
    assert "–" in visible(page)


def test_method_without_decoder_says_so(runs, tmp_path):
    trained = uw.load(runs / "first")
    whole = trained.method.representation()
    trained.method.representation = lambda: Representation(whole.encode, whole.latents)
    page = report([trained], tmp_path / "r.html").read_text()
    assert "no decoder" in visible(page) and "moved from" not in page
    save_samples(trained._replace(folder=type(trained.folder)(tmp_path)))
    assert not (tmp_path / "samples").exists()


def test_unfinished_run_and_one_without_log(tmp_path):
    folder = tiny(tmp_path / "run", keep_state=True).folder.path
    (folder / "weights.safetensors").unlink()
    assert "step 3" in visible(report([_longer(folder)], tmp_path / "a.html").read_text())
    (folder / "log.jsonl").unlink()
    assert "Training curves" not in report([folder], tmp_path / "b.html").read_text()


def _longer(folder):
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "steps": 9}))
    return folder


def test_custom_method_has_no_command(runs, tmp_path):
    trained = uw.load(runs / "first")
    trained = trained._replace(config=trained.config.replace(method="MyVAE"))
    text = visible(report([trained], tmp_path / "r.html").read_text())
    assert mentions(text, "MyVAE", "digits") and "unweave train" not in text


def test_invalid_arguments_are_user_errors(runs, tmp_path):
    with raises("runs", value=[]):
        report([], tmp_path / "r.html")
    with raises("out", value=str(tmp_path)):
        report([runs / "first"], tmp_path)
    with pytest.raises(UserError):
        report([tmp_path], tmp_path / "r.html")
    (tmp_path / "file").write_text("")
    with raises("out", value=str(tmp_path / "file" / "r.html")):
        report([runs / "first"], tmp_path / "file" / "r.html")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


# --- pictures ------------------------------------------------------------------------------------------------------


def test_samples_and_traversal_png(runs):
    trained = uw.load(runs / "first")
    save_samples(trained)
    for name in ("reconstructions.png", "traversals.png"):
        with Image.open(runs / "first" / "samples" / name) as image:
            assert image.width > 600
            assert len(image.convert("L").getcolors()) > 3
    saved = (runs / "first" / "samples" / "traversals.png").read_bytes()
    assert traversal_png(trained) == saved  # the seed decides the picture


def test_pixels_are_clipped_and_always_numbers():
    image = np.array([[[math.nan, -1.0], [2.0, math.inf]]])
    assert to_pixels(image)[::16, ::16, 0].tolist() == [[0, 0], [255, 255]]
    assert to_pixels(np.ones((3, 40, 40))).shape == (40, 40, 3)
    assert to_pixels(np.ones((2, 40, 40))).shape[2] == 1


def test_latents_are_ordered_by_kl_and_shares_survive_constant_factors():
    result = fake_result([[0.1, 0.0], [0.9, 0.0]], [0.5, 2.0])._replace(entropies=np.array([1.0, 0.0]))
    assert latent_order(result) == [1, 0]
    assert adjusted_information(result).tolist() == [[0.1, 0.0], [0.9, 0.0]]
    assert latent_order(result._replace(kl=np.full(2, math.nan))) == [1, 0]


def test_curves_join_stages_and_are_interrupted_at_gaps():
    logs = [{"stage": 0, "step": 5, "loss": 1.0}, {"stage": 0, "step": 10, "loss": math.nan},
            {"stage": 1, "step": 5, "loss": 3.0}]  # fmt: skip
    lines = read_curves(logs, 0)
    assert lines["loss"].steps.tolist() == [5, 10, 15]
    (chart,) = chart_grid([lines])["charts"]
    assert chart["svg"].count("M") == 2
    assert "nan" not in chart["svg"]
    assert len(read_curves([{"stage": 0, "step": i, "loss": 1.0} for i in range(1, 3000)], 0)["loss"].steps) == 200


@pytest.mark.parametrize(("low", "high", "log"), [(0, 1, False), (55, 480, True), (-3, 1e6, False), (0.1, 0.11, True)])
def test_ticks_are_few_and_inside(low, high, log):
    found = ticks(low, high, log)
    assert 2 <= len(found) <= 6
    assert all(low <= t <= high * (1 + 1e-9) for t in found)


# --- words ---------------------------------------------------------------------------------------------------------


def test_findings_name_encoded_split_and_mixed_factors():
    result = fake_result([[0.9, 0.0, 0.3, 0.0], [0.0, 0.5, 0.0, 0.0], [0.0, 0.45, 0.0, 0.01]], [3, 2, 1])
    sentences = " ".join(findings(result, adjusted_information(result)))
    assert mentions(sentences, "Encoded", "f0", "z0", "90", "Partly", "f2", "z0", "Not", "f3")
    assert mentions(sentences, "f1", "split", "z1", "z2") and mentions(sentences, "z0", "mixes", "f0", "f2")


def test_findings_name_only_the_best_latents_of_a_factor():
    result = fake_result([[0.3 + 0.01 * z] for z in range(20)], [1] * 20)
    sentences = " ".join(findings(result, adjusted_information(result)))
    assert mentions(sentences, "f0", "split", "z19", "z18", "z17", "z16", "z15", "15") and "z14" not in sentences


def test_comparison_sentences():
    scores = [{"mig": m, "factor_vae": f} for m, f in ((0.08, 0.5), (0.41, 0.9))]
    sentences = comparison_sentences(["A", "B"], scores, same_data=True)
    assert mentions(sentences[0], "B", "MIG", "0.41", "0.08", "A") and mentions(sentences[1], "B", "FactorVAE", "0.90")
    assert "chance" in sentences[-1]
    equal = comparison_sentences(["A", "B"], [scores[0], scores[0]], same_data=True)[0]
    assert mentions(equal, "A", "B", "equal", "MIG", "0.08")
    assert len(comparison_sentences(["A", "B"], scores, same_data=False)) == 1
    assert len(comparison_sentences(["A", "B"], [{"mig": math.nan}] * 2, same_data=True)) == 1


def test_labels_are_unique(runs):
    configs = [uw.load(runs / name).config for name in ("first", "second")]
    assert run_labels(configs, ["a", "b"]) == ["beta-VAE, beta 4", "beta-VAE, beta 16"]
    assert run_labels([configs[0]] * 2, ["a", "b"]) == ["beta-VAE (a)", "beta-VAE (b)"]
    assert dict(differences(configs))["seed"] == ["0", "1"]
    assert differences([configs[0]] * 2) == []


@pytest.mark.parametrize(
    ("value", "text"), [(0.414, "0.41"), (-0.001, "0.00"), (-1.5, "−1.50"), (math.nan, "–"), (1234.0, "1,234.00")]
)
def test_format_number(value, text):
    assert format_number(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0, "0"), (1500.0, "1,500"), (0.25, "0.25"), (1e-5, "1e−05")])
def test_short(value, text):
    assert short(value) == text


@pytest.mark.parametrize(
    ("took", "text"),
    [
        ({"seconds": 0.2, "models": 1, "device": "cpu"}, "1 s on CPU"),
        ({"seconds": 83.4, "models": 10, "device": "NVIDIA H200"}, "10 models in 1 min 23 s on NVIDIA H200"),
        ({"seconds": 7205.0, "models": 1, "device": "cpu"}, "2 h on CPU"),
        ({}, ""),
    ],
)
def test_training_time(took, text):
    assert training_time(took).replace("\N{NARROW NO-BREAK SPACE}", " ") == text
