import math

import pytest
import torch

from unweave.methods.beta_vae import BetaVAE


@pytest.mark.parametrize("beta", [0.0, 1.0, 7.5])
def test_loss_is_equation_4(case, beta):
    c = case(BetaVAE)
    terms = c.terms()
    torch.testing.assert_close(c.out(beta=beta).losses["model"], (terms.recon_B + beta * terms.kl_B).mean())


def test_by_hand(case, log2_image):
    out = case(BetaVAE).fix(mean=1.0, var=4.0).out(beta=10.0)
    assert out.losses["model"].item() == pytest.approx(log2_image + 30 * (2.0 - math.log(2.0)))


def test_beta_weighs_the_kl_and_is_not_in_what_is_logged_as_kl(case):
    c = case(BetaVAE)
    one, nine = c.out(beta=1.0), c.out(beta=9.0)
    assert one.logs["kl"] == nine.logs["kl"] and one.logs["recon"] == nine.logs["recon"]
    torch.testing.assert_close(nine.losses["model"] - one.losses["model"], 8.0 * one.logs["kl"])
