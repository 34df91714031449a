import pytest

from unweave.errors import UserError
from unweave.nn.graphical_spec import EXAMPLE, read_graph

FACES = "q(r|x) q(l|x) q(i|x) q(s|l,i); p(x|r,l,i,s); labels: i, l; r: normal(10), s: normal(5)"


def test_faces():
    graph = read_graph(FACES, (38, 64), latents=3)
    assert [tuple(v) for v in graph.variables] == [
        ("r", 10, False, None, ("x",), ()),
        ("l", 64, True, 1, ("x",), ()),
        ("i", 38, True, 0, ("x",), ()),
        ("s", 5, False, None, ("l", "i"), ()),
    ]
    assert graph.order == ("r", "l", "i", "s") and graph.image == ("r", "l", "i", "s")
    assert [v.name for v in graph.labelled] == ["i", "l"]
    assert graph.descendants("l") == {"s"} and graph.descendants("r") == graph.descendants("s") == set()


def test_blanks_order_and_sizes_that_are_not_said():
    """Factors in any order, a size from the label or from `latents`, and lines as a user may break them."""
    text = "q( b | a , x )q(z|b)\n, q(a|x);\n p(x|z) p(z|a);; labels :b; a:classes( 5 ), z : normal; b: classes"
    graph = read_graph(text, [7], latents=4)
    assert [(v.name, v.size) for v in graph.variables] == [("b", 7), ("z", 4), ("a", 5)]
    assert graph.order == ("a", "b", "z") and graph.variable("z").decoder == ("a",)
    assert graph.descendants("a") == {"b", "z"} and graph.learned == ("z",)


def test_priors_are_drawn_after_their_parents():
    factors = "q(y|x) q(z|x) q(w|x) q(k|x); p(w|z) p(x|w) p(k|y,w) p(z|y) p(y)"
    graph = read_graph(f"{factors}; labels: y; z: normal, w: normal, k: classes(2)", [3], latents=1)
    assert graph.learned == ("z", "w", "k")


def test_the_example_is_right():
    assert len(read_graph(EXAMPLE, [4], latents=1).variables) == 2


Y = "q(y|x) q(z|x,y); p(x|y,z); labels: y; z: normal(2)"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("q(z|x,y)", "q(z|x,w)", "'w' in q(z|x,w) is unknown; there it may be y, z, x"),
        ("p(x|y,z)", "p(x|y,w)", "'w' in p(x|y,w) is unknown; there it may be y, z"),
        ("p(x|y,z)", "p(x|y,x)", "'x' in p(x|y,x) is unknown"),
        ("q(y|x)", "q(y|z,x)", "the q factors of y, z go round in a circle"),
        ("p(x|y,z)", "p(x|y,z) p(y|z) p(z|y)", "the p factors of x, y, z go round in a circle"),
        ("q(y|x)", "q(y|y)", "circle"),
        ("z: normal(2)", "", "'z' has no distribution; write z: normal(10), or z: classes(4)"),
        ("p(x|y,z)", "", "nothing generates x; write p(x|...)"),
        ("p(x|y,z)", "p(x)", "nothing generates x"),
        ("q(y|x) q(z|x,y)", "q(y|z) q(z)", "nothing is inferred from x"),
        ("q(y|x)", "q(y|x) q(x|y)", "q(x|...) cannot be"),
        ("labels: y;", "", "no variable is labelled; name them in the order of the labels"),
        ("labels: y", "labels: y, z", "labels names 2 (y, z) but the number of labelled factors is 1"),
        ("labels: y", "labels: w", "labels name 'w', which has no q; the variables are y, z"),
        ("labels: y", "labels: z; y: classes(4)", "'z' is labelled with 4 classes but declared normal(2)"),
        ("labels: y", "labels: y; y: classes(3)", "declared classes(3); write y: classes(4), or leave it out"),
        ("labels: y", "labels: y; labels: y", "labels are named twice"),
        ("labels: y", "labels: y, y", "names a variable twice"),
        ("z: normal(2)", "z: normal(2), z: normal(3)", "'z' is declared twice"),
        ("z: normal(2)", "z: normal(0)", "too small; use 1 or more"),
        ("z: normal(2)", "z: classes(1)", "too small; use 2 or more"),
        ("z: normal(2)", "z: classes", "'z: classes' needs a number"),
        ("z: normal(2)", "z: normal(-2)", "'z: normal(-2)' is not understood"),
        ("z: normal(2)", "z: poisson(2)", "'z: poisson(2)' is not understood; write z: normal(10)"),
        ("z: normal(2)", "z: normal(2), w: normal(2)", "distributions name 'w', which has no q"),
        ("p(x|y,z)", "p(x|y,z) p(w|z)", "p factors name 'w', which has no q"),
        ("q(y|x)", "q(y|x) q(y|x)", "q(y|...) is there twice"),
        ("q(y|x)", "r(y|x)", "'r(y|x)' is not understood; write it like 'q(y|x)"),
        ("q(y|x)", "q(y|\nx", "is not understood"),
        ("q(y|x)", "q(y|x,)", "'' in 'q(y|x,)' is no name"),
        ("q(y|x)", "__import__('os')", "is not understood"),
        (Y, "", "nothing generates x"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_line(old, new, said):
    with pytest.raises(UserError) as caught:
        read_graph(Y.replace(old, new), [4], latents=2)
    assert said in str(caught.value) and "\n" not in str(caught.value) and str(caught.value).startswith("graph: ")


def test_no_labels_at_all():
    with pytest.raises(
        UserError, match=r"labels names 1 \(y\) but the number of labelled factors is 0; .*supervision=\"labels\(n="
    ):
        read_graph(Y, (), latents=2)
