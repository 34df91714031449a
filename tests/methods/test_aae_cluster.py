import pytest
import torch
from headed import Headed, chance, discriminator_by_hand, program_on_digits, trained_on_digits, updated_by_phase
from raises import raises

from unweave.contract import DataInfo, Part
from unweave.methods.aae_cluster import AAECluster
from unweave.metrics import cluster_error
from unweave.nn.heads import batch_heads

CLOSE = {"rtol": 1e-5, "atol": 1e-6}  # a discriminator's logits are float32 at most


def codes(c, rate, sharpness=1.0):
    """Pixels dropped, softmax."""
    keep = (c.noise["input"] >= rate).double() / (1 - rate)
    style, logits = c.raw(c.batch.x * keep)
    return style, (sharpness * logits).softmax(1)


def test_reconstruction_by_hand():
    c = Headed(AAECluster, labels=(), clusters=4)
    out = c.out("reconstruction", dropout=0.25)
    torch.testing.assert_close(out.losses["model"], c.recon(torch.cat(codes(c, 0.25), 1)))


def test_below_full_sharpness_clusters_share_an_image_in_both_phases():
    c = Headed(AAECluster, labels=(), clusters=4)
    out = c.out("reconstruction", dropout=0.25, sharpness=0.5)
    torch.testing.assert_close(out.losses["model"], c.recon(torch.cat(codes(c, 0.25, 0.5), 1)))
    game = c.out("regularisation", sharpness=0.0)
    even = torch.full((6, 4), 0.25, dtype=torch.float64)
    torch.testing.assert_close(
        game.logs["class_discriminator"],
        discriminator_by_hand(c.method.class_discriminator, even, c.one_hot(4)),
        **CLOSE,
    )


def test_a_normed_style_has_the_moments_of_its_prior_from_the_start():
    torch.manual_seed(0)
    method = AAECluster(DataInfo((1, 8, 8), 10), net="small", latents=3, clusters=4, style_batch_norm=True)
    found, _ = batch_heads(method.autoencoder, 0.1 + torch.rand(50, 1, 8, 8), 4)
    torch.testing.assert_close(found.style_BZ.mean(0), torch.zeros(3), rtol=0, atol=1e-5)
    torch.testing.assert_close(found.style_BZ.std(0, correction=0), torch.ones(3), rtol=1e-2, atol=0)


def test_regularisation_by_hand():
    c = Headed(AAECluster, labels=(), clusters=4)
    style, classes = codes(c, 0.25)
    out, method = c.out("regularisation", dropout=0.25, class_weight=0.3), c.method
    discriminators = discriminator_by_hand(method.style_discriminator, style, c.noise["prior"])
    discriminators = discriminators + discriminator_by_hand(method.class_discriminator, classes, c.one_hot(4))
    torch.testing.assert_close(out.losses["discriminators"], discriminators, **CLOSE)
    fooling = (
        -chance(method.style_discriminator, style).log().mean()
        - 0.3 * chance(method.class_discriminator, classes).log().mean()
    )
    torch.testing.assert_close(out.losses["encoder"], fooling, **CLOSE)
    assert not out.state  # running averages move once a step, with the reconstruction


@pytest.mark.parametrize("hidden, style", [(True, False), (False, False), (True, True)])
def test_running_averages_replace_the_moments_of_the_batch(hidden, style):
    """With the moments of a batch as running averages, the outputs are those of the batch."""
    c = Headed(AAECluster, labels=(), clusters=4, batch_norm=hidden, style_batch_norm=style)
    state = c.out("reconstruction", dropout=0.0).state
    assert len(state) == 2 * (1 + hidden + style)
    for name, moved in state.items():  # a tenth of the distance from 0 and 1
        start = c.method.get_buffer(name)
        start.copy_(start + (moved - start) / 0.1)
    torch.testing.assert_close(c.method.representation().encode(c.batch.x), torch.cat(codes(c, 0.0), 1))


def test_each_phase_updates_its_players(monkeypatch):
    method, program = program_on_digits(monkeypatch, AAECluster)
    assert method.needs == ("x",)
    encoder = {"autoencoder.encoder"}
    assert updated_by_phase(method, program) == {
        "reconstruction": encoder | {"autoencoder.decoder"},
        "regularisation": encoder | {"style_discriminator", "class_discriminator"},
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


def test_user_errors():
    data = DataInfo((1, 8, 8), 10)
    with raises("clusters", value=1):
        AAECluster(data, net="small", clusters=1)
    with raises("latents", value=0):
        AAECluster(data, net="small", latents=0)


def test_digits_fall_into_clusters(monkeypatch):
    """Without a label. Random predictions are wrong in 9 of 10 cases; one cluster for all is as bad."""
    method, _, images, digits = trained_on_digits(monkeypatch, AAECluster, steps=300, latents=3)
    with torch.no_grad():
        clusters = method.representation().encode(images)[:, 3:]
    assert len(clusters.argmax(1).unique()) >= 10
    purity = sum(digits[clusters.argmax(1) == k].bincount().max() for k in clusters.argmax(1).unique()) / len(digits)
    assert purity > 0.6 and cluster_error(clusters, digits) < 0.5
