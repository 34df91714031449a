"""The demo, cut down to a few steps."""

from raises import raises

from unweave.cli.demo import run_demo


def test_demo_ends_in_a_report_and_can_be_repeated(tmp_path):
    for _ in range(2):
        run_demo(tmp_path / "demo", 0, True)
    page = (tmp_path / "demo" / "report.html").read_text()
    assert "Ada-GVAE" in page
    assert "beta-VAE" in page
    with raises("out", value=str(tmp_path / "demo")):
        run_demo(tmp_path / "demo", 1, True)
