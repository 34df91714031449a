import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch
from raises import raises
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler
from sklearn.utils import estimator_checks as checks

from unweave import Unweaver
from unweave.contract import Method, Out, Representation

# scikit-learn skips this check unless a variable is set before scipy is imported: it has a process of its own below
ELSEWHERE = "check_array_api_input"


def small(**options):
    return Unweaver(**{"latents": 3, "steps": 3, "batch": 8, "device": "cpu"} | options)


def check_choice(check):
    return getattr(check, "func", check).__name__


def every_check():
    found = checks.estimator_checks_generator(small(steps=1))
    return [(estimator, check) for estimator, check in found if check_choice(check) != ELSEWHERE]


@pytest.mark.parametrize("estimator, check", every_check(), ids=[check_choice(check) for _, check in every_check()])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


def test_there_are_checks():
    assert len(every_check()) > 40


def test_scikit_learns_array_api_check():
    program = (
        "from sklearn.utils.estimator_checks import estimator_checks_generator as found\n"
        "from unweave import Unweaver\n"
        "for estimator, check in found(Unweaver(latents=2, steps=1, batch=8, device='cpu')):\n"
        f"    if getattr(check, 'func', check).__name__ == {ELSEWHERE!r}: check(estimator)\n"
    )
    environment = {**os.environ, "SCIPY_ARRAY_API": "1", "OMP_NUM_THREADS": "1"}
    made = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert made.returncode == 0, made.stderr


@pytest.mark.parametrize(
    "check",
    [
        checks.check_transformer_get_feature_names_out,
        checks.check_transformer_get_feature_names_out_pandas,
        checks.check_get_feature_names_out_error,
        checks.check_set_output_transform,
        pytest.param(
            checks.check_set_output_transform_pandas,  # it mixes frames and arrays on purpose
            marks=pytest.mark.filterwarnings("ignore:X .*feature names"),
        ),
        checks.check_dataframe_column_names_consistency,
    ],
)
def test_scikit_learns_checks_of_names(check):
    check("Unweaver", small(steps=1))


@pytest.fixture(scope="module")
def digits():
    return load_digits(return_X_y=True)


def test_it_learns_and_logs(digits):
    X = digits[0] / 16
    model = small(steps=101, batch=32, latents=6, lr=3e-4, settings={"beta": 0.02}).fit(X)
    steps = [record["step"] for record in model.losses_]
    assert steps == list(range(1, 102)) and {"loss", "recon", "kl"} <= set(model.losses_[0])
    error = ((model.inverse_transform(model.transform(X)) - X) ** 2).mean()
    assert error < 0.7 * X.var(axis=0).mean()


def test_a_pipeline_and_a_search(digits):
    X, y = digits[0][:200], digits[1][:200]
    chain = make_pipeline(MinMaxScaler(), small(likelihood="bernoulli"), LogisticRegression())
    search = GridSearchCV(chain, {"unweaver__latents": [2, np.int64(3)], "unweaver__settings": [{"beta": 1}]}, cv=2)
    search.fit(X, y)
    assert search.best_estimator_[1].transform(X).shape[1] == search.best_params_["unweaver__latents"]


def test_the_random_state_decides(digits):
    X = digits[0][:50] / 16
    codes = [small(random_state=state).fit_transform(X) for state in (3, 3, 4, None, np.random.RandomState(0))]
    assert np.array_equal(codes[0], codes[1])
    assert not np.allclose(codes[0], codes[2]) and not np.allclose(codes[3], codes[4])


def test_training_does_not_use_torchs_global_generator(digits):
    torch.manual_seed(1)
    before = torch.random.get_rng_state()
    small().fit(digits[0][:20])
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("method", ["vae", "factor_vae", "beta_tcvae", "dip_vae_ii"])
def test_other_methods(digits, method):
    codes = small(method=method).fit(digits[0][:40] / 16).transform(digits[0][:7] / 16)
    assert codes.shape == (7, 3) and codes.dtype == np.float32 and np.isfinite(codes).all()


def test_images_in_every_form_give_the_same(digits):
    rows = digits[0][:40] / 16
    forms = [rows.reshape(-1, 1, 8, 8), rows.reshape(-1, 8, 8), list(rows.reshape(-1, 8, 8))]
    model = small(net="small", shape=(1, 8, 8)).fit(rows)
    expected = model.transform(rows)
    assert model.shape_ == (1, 8, 8) and model.inverse_transform(expected).shape == (40, 64)
    for form in forms:
        other = small(net="small").fit(form)
        assert other.n_features_in_ == 64
        assert np.array_equal(other.transform(form), expected)
        assert other.inverse_transform(expected).shape == np.shape(form)
    assert small(shape=(8, 8)).fit(rows).shape_ == (1, 8, 8)


def test_a_vector_needs_no_shape():
    model = small().fit(np.random.default_rng(0).normal(size=(30, 7)))
    assert model.shape_ == (1, 1, 7)
    assert list(model.get_feature_names_out()) == ["unweaver0", "unweaver1", "unweaver2"]


def test_a_pickle_is_the_same_model(digits):
    model = small().fit(digits[0][:40])
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.transform(digits[0]), model.transform(digits[0]))
    assert again.losses_ == model.losses_


X = np.linspace(0, 2, 48).reshape(4, 12).astype(np.float32)


@pytest.mark.parametrize(
    "options, data, argument, value",
    [
        ({"likelihood": "bernoulli"}, X, "X", (0.0, 2.0)),
        ({"method": "ada_gvae"}, X, "method", "ada_gvae"),
        ({"method": "bata_vae"}, X, "method", "bata_vae"),
        ({"settings": {"gamma": 3}}, X, "setting", "gamma"),
        ({"settings": {"latents": 3}}, X, "settings", "latents"),
        ({"steps": 0}, X, "steps", 0),
        ({"steps": 2.5}, X, "steps", 2.5),
        ({"batch": 1}, X, "batch", 1),
        ({"latents": 0}, X, "latents", 0),
        ({"lr": -1}, X, "lr", -1),
        ({"random_state": -1}, X, "random_state", -1),
        ({"precision": "half"}, X, "precision", "half"),
        ({"device": "abacus"}, X, "device", "abacus"),
        ({"engine": "steam"}, X, "engine", "steam"),
        ({"shape": (2, 2)}, X, "shape", (2, 2)),
        ({"shape": (1, 3, 4)}, X.reshape(4, 1, 4, 3), "shape", (1, 3, 4)),
        ({"shape": "wide"}, X, "shape", "wide"),
        ({"net": "small"}, X, "net", "small"),
        ({"lr": 1e30, "steps": 20}, X, "lr", 1e30),
        ({}, np.zeros((4, 8, 8, 3)), "X", (4, 8, 8, 3)),
        ({}, np.zeros((4, 1, 1, 8, 8)), "X", (4, 1, 1, 8, 8)),
    ],
)
def test_refused(options, data, argument, value):
    model = small(**options)
    with raises(argument, value=value):
        model.fit(data)
    assert not hasattr(model, "method_")


def test_no_samples():
    with pytest.raises(ValueError, match="0 sample"):
        small().fit(np.zeros((0, 1, 8, 8)))


def test_later_input_must_fit(digits):
    model = small().fit(digits[0][:20].reshape(-1, 8, 8))
    with raises("X", value=(1, 4, 16)):
        model.transform(np.zeros((2, 4, 16)))
    with pytest.raises(ValueError, match="63 features"):
        model.transform(np.zeros((2, 63)))
    with raises("Z", value=(2, 4)):
        model.inverse_transform(np.zeros((2, 4)))


class TwoStages(Method):
    """A method of the user's own with a second stage, from whose decoder nothing is asked."""

    players = {"model": ("net",)}

    def __init__(self, data, *, previous=None):
        super().__init__()
        self.latents, self.net = 2, torch.nn.Linear(data.shape[2], 2)
        self.first = None if previous is None else [previous]  # in a list: not a part to be trained

    def forward(self, batch, noise, hyper, step):
        loss = self.net(batch.x).square().mean()
        return Out({"model": loss}, {"loss": loss})

    def representation(self):
        return Representation(lambda x: self.net(x)[:, 0, 0], 2)


class Second(TwoStages):
    next_stage = None


TwoStages.next_stage = Second


def test_stages_and_methods_of_your_own():
    model = small(method=TwoStages).fit(X)
    assert type(model.method_) is Second and type(model.method_.first[0]) is TwoStages
    assert [record["step"] for record in model.losses_] == [1, 2, 3, 1, 2, 3]
    assert model.transform(X).shape == (4, 2)
    with raises("method", accepted="a method with decode"):
        model.inverse_transform(np.zeros((1, 2)))
