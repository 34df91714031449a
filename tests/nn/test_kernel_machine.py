import torch

from unweave.nn.kernel_machine import KernelMachine


def test_features_are_of_the_gaussian_kernel():
    torch.manual_seed(0)
    machine, z = KernelMachine(3, 2, width=1.5, features=20_000), torch.randn(6, 3)
    features = machine.features(z)
    kernel = torch.exp(-torch.cdist(z, z).square() / (2 * 1.5**2))
    torch.testing.assert_close(features @ features.T, kernel, atol=0.03, rtol=0)
    assert machine(z).tolist() == torch.zeros(6, 2).tolist()  # no opinion before training
