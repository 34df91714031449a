import pytest
from raises import raises

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


def test_blanks_order_and_default_sizes():
    """Factors are in any order, a size comes from the label or from `latents`, and line breaks are ignored."""
    text = "q( b | a , x )q(z|b)\n, q(a|x);\n p(x|z) p(z|a);; labels :b; a:classes( 5 ), z : normal; b: classes"
    graph = read_graph(text, [7], latents=4)
    assert [(v.name, v.size) for v in graph.variables] == [("b", 7), ("z", 4), ("a", 5)]
    assert graph.order == ("a", "b", "z") and graph.variable("z").decoder == ("a",)
    assert graph.descendants("a") == {"b", "z"} and graph.learned == ("z",)


def test_learned_priors_come_after_their_parents():
    factors = "q(y|x) q(z|x) q(w|x) q(k|x); p(w|z) p(x|w) p(k|y,w) p(z|y) p(y)"
    graph = read_graph(f"{factors}; labels: y; z: normal, w: normal, k: classes(2)", [3], latents=1)
    assert graph.learned == ("z", "w", "k")


def test_the_example_is_valid():
    assert len(read_graph(EXAMPLE, [4], latents=1).variables) == 2


Y = "q(y|x) q(z|x,y); p(x|y,z); labels: y; z: normal(2)"


@pytest.mark.parametrize(
    ("old", "new", "mentioned"),
    [
        ("q(z|x,y)", "q(z|x,w)", "q(z|x,w)"),
        ("p(x|y,z)", "p(x|y,w)", "p(x|y,w)"),
        ("p(x|y,z)", "p(x|y,x)", "p(x|y,x)"),
        ("q(y|x)", "q(y|z,x)", "q factors of y, z"),
        ("p(x|y,z)", "p(x|y,z) p(y|z) p(z|y)", "p factors of x, y, z"),
        ("q(y|x)", "q(y|y)", "q factors of y"),
        ("z: normal(2)", "", "z: normal(10)"),
        ("p(x|y,z)", "", "p(x|...)"),
        ("p(x|y,z)", "p(x)", "p(x|...)"),
        ("q(y|x) q(z|x,y)", "q(y|z) q(z)", "q(...|x)"),
        ("q(y|x)", "q(y|x) q(x|y)", "q(x|...)"),
        ("labels: y;", "", "labels: y"),
        ("labels: y", "labels: y, z", "2 variables (y, z)"),
        ("labels: y", "labels: w", "'w'"),
        ("labels: y", "labels: z; y: classes(4)", "z: classes(4)"),
        ("labels: y", "labels: y; y: classes(3)", "y: classes(4)"),
        ("labels: y", "labels: y; labels: y", "twice"),
        ("labels: y", "labels: y, y", "twice"),
        ("z: normal(2)", "z: normal(2), z: normal(3)", "'z'"),
        ("z: normal(2)", "z: normal(0)", "1 or more"),
        ("z: normal(2)", "z: classes(1)", "2 or more"),
        ("z: normal(2)", "z: classes", "z: classes(4)"),
        ("z: normal(2)", "z: normal(-2)", "'z: normal(-2)'"),
        ("z: normal(2)", "z: poisson(2)", "'z: poisson(2)'"),
        ("z: normal(2)", "z: normal(2), w: normal(2)", "'w'"),
        ("p(x|y,z)", "p(x|y,z) p(w|z)", "'w'"),
        ("q(y|x)", "q(y|x) q(y|x)", "q(y|...)"),
        ("q(y|x)", "r(y|x)", "'r(y|x)'"),
        ("q(y|x)", "q(y|\nx", "q(y|"),
        ("q(y|x)", "q(y|x,)", "'q(y|x,)'"),
        ("q(y|x)", "__import__('os')", "__import__"),
        (Y, "", "p(x|...)"),
    ],
)  # fmt: skip
def test_invalid_texts(old, new, mentioned):
    with raises("graph") as caught:
        read_graph(Y.replace(old, new), [4], latents=2)
    assert mentioned in str(caught.value)


def test_a_graph_needs_as_many_labelled_variables_as_factors():
    with raises("graph"):
        read_graph(Y, (), latents=2)
