"""Losses: every law over the catalogue, so that a new loss is tested for free."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

from surecut.losses import CATALOGUE, CompositeLoss, Hinge, Logistic, MarginLoss, NoLinkError, check_loss, get_loss

PROPER = [make() for make in CATALOGUE.values() if make is not Hinge]
ALL = [make() for make in CATALOGUE.values()]
PROBABILITIES = np.concatenate(([0.0, 1e-9, 1e-3], np.linspace(0.01, 0.99, 99), [1 - 1e-3, 1 - 1e-9, 1.0]))
INNER = PROBABILITIES[(PROBABILITIES > 0) & (PROBABILITIES < 1)]
SCORES = np.concatenate((np.linspace(-3, 3, 121), [-1e4, -50, 50, 1e4]))


def named(loss):
    return loss.name


@pytest.fixture(params=PROPER, ids=named)
def proper(request):
    return request.param


FORECAST_LOSSES = {
    "logistic": lambda p: -np.log(p),
    "squared": lambda p: 4 * (1 - p) ** 2,
    "exponential": lambda p: np.sqrt((1 - p) / p),
    "squared_hinge": lambda p: 4 * (1 - p) ** 2,
    "spherical": lambda p: 1 - p / np.sqrt(p**2 + (1 - p) ** 2),
}
"""c(1, p), written by hand; all of these are symmetric, c(−1, p) = c(1, 1 − p)."""


def test_composite_identity(proper):
    """ℓ(y, f) = c(y, ψ⁻¹(f)) on the link's range."""
    scores = np.linspace(-0.999, 0.999, 201)
    for label in (1, -1):
        forecast = proper.inverse_link(label * scores)  # by symmetry the forecast for the label itself
        np.testing.assert_allclose(proper.value(label, scores), FORECAST_LOSSES[proper.name](forecast), atol=1e-12)
        np.testing.assert_allclose(
            proper.probability_loss(label, proper.inverse_link(scores)), proper.value(label, scores), atol=1e-12
        )


def test_the_inverse_link_undoes_the_link_and_saturates(proper):
    np.testing.assert_allclose(proper.inverse_link(proper.link(PROBABILITIES)), PROBABILITIES, atol=1e-12)
    np.testing.assert_allclose(proper.inverse_link([-1e4, 1e4, -np.inf, np.inf]), [0, 1, 0, 1], atol=1e-12)
    assert (np.diff(proper.link(PROBABILITIES)) > 0).all()


def test_properness(proper):
    risk = proper.conditional_risk(INNER[:, None], proper.link(INNER))
    assert (risk >= np.diagonal(risk)[:, None] - 1e-12).all()
    np.testing.assert_allclose(np.diagonal(risk), proper.bayes_risk(INNER), rtol=1e-9, atol=1e-12)


def test_strong_properness_everywhere_also_beyond_the_links_range(proper):
    eta = PROBABILITIES[:, None]
    with np.errstate(over="ignore"):
        regret = proper.conditional_regret(eta, SCORES)
    bound = proper.strong_properness / 2 * (eta - proper.inverse_link(SCORES)) ** 2
    assert (regret >= bound - 1e-9).all()


def test_a_larger_constant_would_be_wrong(proper):
    """The declared λ cannot be raised by 3 %: the law above can fail."""
    eta = np.concatenate((np.geomspace(1e-5, 0.4, 200), np.linspace(0.4, 0.6, 101)))
    near = eta * 1.01
    regret = proper.conditional_regret(eta, proper.link(near))
    assert (regret < 1.03 * proper.strong_properness / 2 * (eta - near) ** 2).any()


@pytest.mark.parametrize("loss", ALL, ids=named)
def test_derivatives_are_finite_differences(loss):
    scores = np.array([-2.3, -1.7, -0.6, -0.1, 0.2, 0.7, 1.6, 2.4])
    for label in (1, -1):
        slope = (loss.value(label, scores + 1e-6) - loss.value(label, scores - 1e-6)) / 2e-6
        np.testing.assert_allclose(loss.gradient(label, scores), slope, atol=1e-6, rtol=1e-6)
        curvature = (loss.gradient(label, scores + 1e-6) - loss.gradient(label, scores - 1e-6)) / 2e-6
        np.testing.assert_allclose(loss.hessian(label, scores), curvature, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("loss", ALL, ids=named)
def test_value_and_gradient_together_are_as_apart(loss):
    for label in (1, -1, SCORES > 0.5):
        value, slope = loss.value_and_gradient(label, SCORES)
        np.testing.assert_allclose(value, loss.value(label, SCORES), rtol=1e-12)
        np.testing.assert_allclose(slope, loss.gradient(label, SCORES), rtol=1e-12)


@pytest.mark.parametrize("loss", ALL, ids=named)
def test_sound_from_minus_to_plus_ten_thousand(loss):
    extreme = np.array([-1e4, -1e3, 0.0, 1e3, 1e4])
    for label in (0, 1, True, -1):
        value = loss.value(label, extreme)
        assert not np.isnan(value).any()
        assert (value >= 0).all()
        assert not np.isnan(loss.gradient(label, extreme)).any()
    if loss.name != "exponential":
        assert np.isfinite(loss.value(1, extreme)).all()
    for eta in (0.0, 1.0):
        assert not np.isnan(loss.conditional_risk(eta, extreme)).any()
        assert loss.bayes_risk(eta) == pytest.approx(0, abs=1e-12)
    assert Logistic().value(1, -1e4) == 1e4


def test_table_2_of_the_paper():
    p = INNER
    expected = {
        "squared": (4 * (1 - p) ** 2, 4 * p**2, 2 * p - 1, 8),
        "logistic": (-np.log(p), -np.log1p(-p), np.log(p / (1 - p)), 4),
        "exponential": (np.sqrt((1 - p) / p), np.sqrt(p / (1 - p)), np.log(p / (1 - p)) / 2, 4),
    }
    for name, (positive, negative, link, strength) in expected.items():
        loss = get_loss(name)
        np.testing.assert_allclose(loss.probability_loss(1, p), positive, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(loss.probability_loss(-1, p), negative, rtol=1e-6, atol=1e-12)
        np.testing.assert_allclose(loss.link(p), link, rtol=1e-6, atol=1e-12)
        assert loss.strong_properness == strength
    y, f = np.array([1, -1, 1]), np.array([0.3, 0.4, -2.0])
    np.testing.assert_allclose(get_loss("squared").value(y, f), (y - f) ** 2)
    np.testing.assert_allclose(get_loss("logistic").value(y, f), np.log(1 + np.exp(-y * f)))
    np.testing.assert_allclose(get_loss("exponential").value(y, f), np.exp(-y * f))
    np.testing.assert_allclose(get_loss("hinge").value(y, f), np.maximum(0, 1 - y * f))


def test_spherical_score():
    p = INNER
    np.testing.assert_allclose(get_loss("spherical").probability_loss(1, p), 1 - p / np.sqrt(p**2 + (1 - p) ** 2))


def test_logistic_regret_is_the_kullback_leibler_divergence():
    eta, forecast = INNER[:, None], INNER
    divergence = special.rel_entr(eta, forecast) + special.rel_entr(1 - eta, 1 - forecast)
    np.testing.assert_allclose(Logistic().conditional_regret(eta, Logistic().link(forecast)), divergence, atol=1e-9)


def test_pointwise_chain():
    """reg_α ≤ |η − p| ≤ √(2/λ · reg_ℓ)."""
    eta, forecast = INNER[:, None], INNER
    for alpha in (0.1, 0.5, 0.8):
        wrong = (eta >= alpha) != (forecast >= alpha)
        assert (wrong * np.abs(eta - alpha) <= np.abs(eta - forecast) + 1e-12).all()
    for loss in PROPER:
        regret = loss.conditional_regret(eta, loss.link(forecast))
        assert (np.abs(eta - forecast) <= np.sqrt(2 / loss.strong_properness * regret) + 1e-6).all()


def test_risk_of_a_sample():
    y, f = np.array([0, 1, 1]), np.array([0.5, -0.5, 2.0])
    assert Logistic().risk(y, f) == pytest.approx(np.mean(Logistic().value(y, f)))
    assert Logistic().risk(y, f, sample_weight=[0, 1, 0]) == pytest.approx(Logistic().value(1, -0.5))


@pytest.mark.parametrize("loss", PROPER, ids=named)
def test_check_loss_finds_ours_right(loss):
    report = check_loss(loss)
    assert report.ok
    assert report.proper
    assert report.strong_properness == pytest.approx(loss.strong_properness, rel=0.01)


class TooBold(Logistic):
    name = "too_bold"
    strong_properness = 5.0


class Improper(MarginLoss):
    """The absolute loss of probabilities, whose best forecast is 0 or 1."""

    name = "improper"

    def margin_value(self, m):
        return special.expit(-m)

    def margin_slope(self, m):
        return -special.expit(m) * special.expit(-m)

    def link(self, p):
        return special.logit(p)

    def inverse_link(self, f):
        return special.expit(f)


class Asymmetric(CompositeLoss):
    """A user's own: misses count three times, on the probability scale. Proper, through its own link."""

    name = "asymmetric"

    def value(self, y, f):
        odds = np.exp(np.asarray(f, dtype=float))
        return np.where(np.asarray(y) > 0, 3 * np.log1p(1 / odds), np.log1p(odds))

    def link(self, p):
        return special.logit(3 * np.asarray(p) / (1 + 2 * np.asarray(p)))

    def inverse_link(self, f):
        q = special.expit(f)
        return q / (3 - 2 * q)


def test_check_loss_finds_what_is_wrong():
    assert "too large" in check_loss(TooBold()).problems[0]
    report = check_loss(Improper())
    assert not report.proper
    assert "not proper" in report.problems[0]
    assert check_loss(Hinge()).strong_properness is None


def test_a_users_own_loss_is_a_small_subclass():
    report = check_loss(Asymmetric())
    assert report.ok
    assert report.strong_properness > 0
    with pytest.raises(NotImplementedError, match="no gradient"):
        Asymmetric().gradient(1, 0.0)


def test_hinge_has_no_link():
    with pytest.raises(NoLinkError, match="do not stand for probabilities"):
        Hinge().link(0.5)
    assert Hinge().strong_properness is None
    np.testing.assert_allclose(Hinge().conditional_regret([0.2, 0.7], [-1, 1]), 0, atol=1e-12)


def test_get_loss():
    assert get_loss("Log-Loss") == Logistic()
    assert get_loss(TooBold()).name == "too_bold"
    with pytest.raises(ValueError, match="did you mean 'logistic'"):
        get_loss("logistik")
    with pytest.raises(TypeError, match="expected a loss"):
        get_loss(3)
    with pytest.raises(ValueError, match="must lie in"):
        Logistic().link(1.5)
