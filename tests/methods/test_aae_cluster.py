import pytest
import torch
from headed import Headed, chance, critic_by_hand, moved_by_phase, program_on_digits, trained_on_digits

from unweave.contract import DataInfo, Part, UserError
from unweave.methods.aae_cluster import AAECluster
from unweave.metrics import cluster_error

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a critic's logits are float32 at most


def codes(c, rate):
    """Pixels dropped, softmax."""
    keep = (c.noise["input"] >= rate).double() / (1 - rate)
    style, logits = c.raw(c.batch.x * keep)
    return style, logits.softmax(1)


def test_reconstruction_by_hand():
    c = Headed(AAECluster, labels=(), clusters=4)
    out = c.out("reconstruction", dropout=0.25)
    torch.testing.assert_close(out.losses["model"], c.recon(torch.cat(codes(c, 0.25), 1)))


def test_regularisation_by_hand():
    c = Headed(AAECluster, labels=(), clusters=4)
    style, classes = codes(c, 0.25)
    out, method = c.out("regularisation", dropout=0.25, class_weight=0.3), c.method
    critics = critic_by_hand(method.style_critic, style, c.noise["prior"])
    critics = critics + critic_by_hand(method.class_critic, classes, c.one_hot(4))
    torch.testing.assert_close(out.losses["critics"], critics, **CLOSE)
    fooling = -chance(method.style_critic, style).log().mean() - 0.3 * chance(method.class_critic, classes).log().mean()
    torch.testing.assert_close(out.losses["encoder"], fooling, **CLOSE)
    assert not out.state  # running averages move once a step, with the reconstruction


@pytest.mark.parametrize("hidden", [True, False])
def test_running_averages_stand_in_for_the_batch(hidden):
    """Moved all the way to the moments of a batch, they say of it what the batch said of itself."""
    c = Headed(AAECluster, labels=(), clusters=4, normed=hidden)
    state = c.out("reconstruction", dropout=0.0).state
    assert len(state) == (4 if hidden else 2)
    for name, moved in state.items():  # from 0 and 1, a tenth of the way
        start = c.method.get_buffer(name)
        start.copy_(start + (moved - start) / 0.1)
    torch.testing.assert_close(c.method.representation().encode(c.batch.x), torch.cat(codes(c, 0.0), 1))


def test_each_phase_moves_its_players(monkeypatch):
    method, program = program_on_digits(monkeypatch, AAECluster)
    assert method.needs == ("x",)
    encoder = {"autoencoder.encoder"}
    assert moved_by_phase(method, program) == {
        "reconstruction": encoder | {"autoencoder.decoder"},
        "regularisation": encoder | {"style_critic", "class_critic"},
    }


def test_code_is_style_then_clusters_and_an_image_is_encoded_by_itself():
    c = Headed(AAECluster, labels=(), clusters=4)
    found = c.method.representation()
    whole = found.encode(c.batch.x)
    torch.testing.assert_close(found.encode(c.batch.x[:1]), whole[:1])
    assert found.parts == (Part("style", 3), Part("class", 4, classes=True)) and found.latents == 7
    torch.testing.assert_close(whole[:, 3:].sum(1), torch.ones(6, dtype=torch.float64))
    assert found.posterior is None and found.classify is None and found.decode(whole).shape == c.batch.x.shape
    assert torch.equal(found.cluster(c.batch.x), whole[:, 3:])


def test_refusals():
    data = DataInfo((1, 8, 8), 10)
    with pytest.raises(UserError, match="clusters 1 is too small; use 2 or more"):
        AAECluster(data, net="small", clusters=1)
    with pytest.raises(UserError, match="latents 0 is too small; use 1 or more"):
        AAECluster(data, net="small", latents=0)


def test_digits_fall_into_clusters(monkeypatch):
    """Without a label. Guessing is wrong in 9 of 10; one cluster for all is as bad."""
    method, _, images, digits = trained_on_digits(monkeypatch, AAECluster, steps=300, latents=3)
    with torch.no_grad():
        clusters = method.representation().encode(images)[:, 3:]
    assert len(clusters.argmax(1).unique()) >= 10
    purity = sum(digits[clusters.argmax(1) == k].bincount().max() for k in clusters.argmax(1).unique()) / len(digits)
    assert purity > 0.6 and cluster_error(clusters, digits) < 0.5
