import torch

from unweave.nn.kernel_machine import KernelMachine


def test_features_are_of_the_gaussian_kernel():
    torch.manual_seed(0)
    z = torch.randn(6, 2)
    machine = KernelMachine(2.0 * torch.randn(800, 2), 3, width=1.5)
    features = machine.features(z)
    kernel = torch.exp(-torch.cdist(z, z).square() / (2 * 1.5**2))
    torch.testing.assert_close(features @ features.T, kernel, atol=0.01, rtol=0)
    assert machine(z).tolist() == torch.zeros(6, 3).tolist()  # no opinion before training


def test_coinciding_centres_have_finite_features():
    machine = KernelMachine(torch.ones(50, 4), 2, width=2.0)
    features = machine.features(torch.ones(3, 4))
    assert features.isfinite().all()
    torch.testing.assert_close((features @ features.T), torch.ones(3, 3), atol=0.01, rtol=0)
