"""Images similar to 3D Shapes (Burgess & Kim 2018), ray cast from a fitted description of its room.

The three hues do not affect the geometry, which has 8 x 4 x 15 = 480 views. Each view is cast once into five layers
(sky, floor, wall, object, white): the area of each pixel times its shading. An image is colours times layers.

Axes: z up, floor z = 0, walls at x = +-3.5 and y = 3.5 of height 2, no ceiling, the object at the origin.
Shape letters: B batch, L layers, R rays, H height, W width; points and directions are [3, R], the axes first.
"""

import colorsys
import math
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn import Buffer

from unweave.data.dataset import Dataset
from unweave.data.storage.cache import cached_array
from unweave.errors import check_integer
from unweave.ops.blend import blend
from unweave.ops.threads import single_thread

HUES = tuple(i / 10 for i in range(10))
SCALES = tuple(np.linspace(0.75, 1.25, 8).tolist())
SHAPES = ("cube", "cylinder", "sphere", "capsule")
ORIENTATIONS = tuple(np.linspace(-30.0, 30.0, 15).tolist())  # azimuth of the camera in degrees

_LAYERS = 5  # sky, floor, wall, object, white
_SAMPLES = 4  # per pixel, in each direction
_UNIT, _ZERO = 200.0, 30.0  # a layer's value v is stored as 200 v + 30
_SKY = (154.0 / 255.0, 224.5 / 255.0, 249.0 / 255.0)
_WALL_AT, _WALL_TOP = 3.5, 2.0
_LIGHT = (-4.746, 1.805, 20.353)
_FAR = 1e9  # distance of rays that hit nothing
_BALL_HEIGHT, _BALL_RADIUS = 0.8125, 1.05  # of a ball around every object

Hit = tuple[Tensor, Tensor]  # distance along the ray [R] (_FAR if missed), outward normal [3, R]


def _vector(x: float, y: float, z: float) -> Tensor:
    return torch.tensor([[x], [y], [z]])


def _dot(a: Tensor, b: Tensor) -> Tensor:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _unit(v: Tensor) -> Tensor:
    return v * _dot(v, v).rsqrt()


def _to_light(at: Tensor) -> Tensor:
    return _unit(_vector(*_LIGHT) - at)


def camera_rays(degrees: float, size: int) -> tuple[Tensor, Tensor]:
    """Return the eye [3, 1] and the unit directions [3, R] of all samples, row by row, from this azimuth."""
    a, n = math.radians(degrees), size * _SAMPLES
    eye = _vector(2.5 * math.sin(a), -2.5 * math.cos(a), 0.75)
    forward, right = _vector(-math.sin(a), math.cos(a), 0.0), _vector(math.cos(a), math.sin(a), 0.0)
    u = ((torch.arange(n) + 0.5) * (2.0 / n) - 1.0) * math.tan(math.radians(25.0))
    across, down = u.repeat(n), u.repeat_interleave(n)
    return eye, _unit(forward + across * right - down * _vector(0.0, 0.0, 1.0))


def _nearest(first: Hit, second: Hit) -> Hit:
    nearer = second[0] < first[0]
    return torch.where(nearer, second[0], first[0]), torch.where(nearer, second[1], first[1])


def _quadratic(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """Return the smaller root of a t^2 + 2 b t + c, _FAR if there is none or it is negative."""
    inside = b * b - a * c
    t = (-b - inside.clamp_min(0.0).sqrt()) / a
    return torch.where((inside > 0.0) & (t > 0.0), t, _FAR)


def hit_sphere(start: Tensor, ray: Tensor, radius: float, height: float) -> Hit:
    from_centre = start - _vector(0.0, 0.0, height)
    t = _quadratic(_dot(ray, ray), _dot(ray, from_centre), _dot(from_centre, from_centre) - radius**2)
    return t, (from_centre + t * ray) / radius


def _hit_tube(start: Tensor, ray: Tensor, radius: float, low: float, high: float) -> Hit:
    """Return the hit of the side of an upright cylinder."""
    flat = _vector(1.0, 1.0, 0.0)
    across, foot = ray * flat, start * flat
    t = _quadratic(_dot(across, across).clamp_min(1e-12), _dot(across, foot), _dot(foot, foot) - radius**2)
    z = start[2] + t * ray[2]
    return torch.where((low <= z) & (z <= high), t, _FAR), (foot + t * across) / radius


def hit_cylinder(start: Tensor, ray: Tensor, radius: float, half: float) -> Hit:
    """Return the hit of a cylinder on the floor; its lower cap faces the floor and is never hit first."""
    t = (2.0 * half - start[2]) / torch.where(ray[2] == 0.0, 1e-12, ray[2])
    x, y = start[0] + t * ray[0], start[1] + t * ray[1]
    top = torch.where((t > 0.0) & (x * x + y * y <= radius**2), t, _FAR)
    return _nearest(_hit_tube(start, ray, radius, 0.0, 2.0 * half), (top, _vector(0.0, 0.0, 1.0)))


def hit_capsule(start: Tensor, ray: Tensor, radius: float, half: float) -> Hit:
    """Return the hit of a cylinder between two spheres, of which the lower one touches the floor."""
    low, high = radius, radius + 2.0 * half
    balls = _nearest(hit_sphere(start, ray, radius, low), hit_sphere(start, ray, radius, high))
    return _nearest(balls, _hit_tube(start, ray, radius, low, high))


def hit_cube(start: Tensor, ray: Tensor, half: float) -> Hit:
    """Return the hit of a cube on the floor; a ray is inside from its last entry to its first exit of three slabs."""
    slope = torch.where(ray.abs() < 1e-9, 1e-9, ray)
    middle, reach = (_vector(0.0, 0.0, half) - start) / slope, half / slope.abs()
    t, axis = (middle - reach).max(0)
    normal = -slope.sign() * (axis == torch.arange(3)[:, None])
    return torch.where((t < (middle + reach).amin(0)) & (t > 0.0), t, _FAR), normal


def hit_object(start: Tensor, ray: Tensor, shape: str, scale: float) -> Hit:
    """Return where rays [3, R] from these points [3, R] or [3, 1] hit the object."""
    if shape == "cube":
        return hit_cube(start, ray, 0.35 * scale)
    if shape == "cylinder":
        return hit_cylinder(start, ray, 0.375 * scale, 0.375 * scale)
    if shape == "sphere":
        return hit_sphere(start, ray, 0.425 * scale, 0.425 * scale)
    return hit_capsule(start, ray, 0.325 * scale, 0.325 * scale)


class CameraView(NamedTuple):
    """The parts of an image that are equal for the 32 objects seen from one azimuth."""

    eye: Tensor  # [3, 1]
    ray: Tensor  # [3, R]
    empty: Tensor  # layers of the room without an object [L, R]
    in_shadow: Tensor  # layer of the floor if it is in the shadow [R]
    at: Tensor  # where the rays hit the room [3, R]
    object_rays: Tensor  # indices of the rays that may hit an object
    shadow_rays: Tensor  # indices of the rays that may hit the floor in the shadow of an object


def _may_hit(start: Tensor, ray: Tensor) -> Tensor:
    """Return a mask of the rays that pass through the ball around all objects of all sizes."""
    from_centre = start - _vector(0.0, 0.0, _BALL_HEIGHT)
    return _dot(from_centre, from_centre) - _dot(from_centre, ray) ** 2 < _BALL_RADIUS**2


def render_view(degrees: float, size: int) -> CameraView:
    """Render the empty room from this azimuth."""
    eye, ray = camera_rays(degrees, size)
    t_floor = torch.where(ray[2] < 0.0, -eye[2] / ray[2].clamp_max(-1e-9), _FAR)
    t_side = (_WALL_AT - ray[0].sign() * eye[0]) / ray[0].abs().clamp_min(1e-9)
    t_back = (_WALL_AT - eye[1]) / ray[1]  # in all views every ray hits the plane of the back wall
    t_wall = torch.minimum(t_back, t_side)
    on_floor = t_floor < t_wall
    on_wall = ~on_floor & (eye[2] + t_wall * ray[2] <= _WALL_TOP)
    at = eye + torch.minimum(t_floor, t_wall) * ray
    dark = (0.254 - 0.278 * ray[2]) * on_floor
    spot = (-0.5 * ((at[0] + 1.561) / 2.622) ** 2 - 0.5 * ((at[1] - 0.662) / 2.462) ** 2).exp() * on_floor
    back = t_back < t_side
    facing = torch.where(back, ray[1], ray[0].abs())
    wall = 0.351 * facing + torch.where(back, 0.649, torch.where(ray[0] < 0.0, 0.483, 0.400))
    none = torch.zeros_like(dark)
    empty = torch.stack([(~(on_floor | on_wall)).float(), dark + 0.912 * spot, wall * on_wall, none, none])
    shadow_rays = (on_floor & _may_hit(at, _to_light(at))).nonzero()[:, 0]
    object_rays = _may_hit(eye, ray).nonzero()[:, 0]
    return CameraView(eye, ray, empty, dark, at, object_rays, shadow_rays)


def _shade_object(at: Tensor, normal: Tensor, ray: Tensor) -> tuple[Tensor, Tensor]:
    """Return colour and white highlight. Shapes are convex: a point is lit if and only if it faces the light."""
    light = _to_light(at)
    facing_light, facing_eye = _dot(normal, light).clamp_min(0.0), (-_dot(normal, ray)).clamp_min(0.0)
    shine = ((_dot(normal, _unit(light - ray)) - 0.64) / 0.1).clamp(0.0, 1.0)
    return 0.51 + 0.447 * facing_eye + 1.65 * facing_light, 0.114 * shine * (facing_light > 0.0)


def cast_object(view: CameraView, shape: str, scale: float, size: int) -> Tensor:
    """Return the five layers of the room with an object in it [L, H*W], uint8."""
    layers = view.empty.clone()
    ground = view.at[:, view.shadow_rays]
    shadow = view.shadow_rays[hit_object(ground, _to_light(ground), shape, scale)[0] < _FAR]
    layers[1, shadow] = view.in_shadow[shadow]
    ray = view.ray[:, view.object_rays]
    t, normal = hit_object(view.eye, ray, shape, scale)
    met = (t < _FAR).nonzero()[:, 0]
    t, normal, ray, seen = t[met], normal[:, met], ray[:, met], view.object_rays[met]
    layers[:, seen] = 0.0
    layers[3, seen], layers[4, seen] = _shade_object(view.eye + t * ray, normal, ray)
    samples = layers.clamp_(0.0, 1.0).reshape(_LAYERS, size * _SAMPLES, size * _SAMPLES)
    # The original images ring at edges like a cubic filter, so layers may be below 0 and above 1.
    pixels = F.interpolate(samples[None], (size, size), mode="bicubic", antialias=True)[0]
    return (pixels * _UNIT + _ZERO).round().clamp(0, 255).to(torch.uint8).flatten(1)


@single_thread()
def cast_store(size: int) -> np.ndarray:
    """Return the layers of all 480 views [480, L, H*W], uint8: scale, shape, orientation, the last varying fastest."""
    store = torch.empty(len(SCALES), len(SHAPES), len(ORIENTATIONS), _LAYERS, size * size, dtype=torch.uint8)
    for o, degrees in enumerate(ORIENTATIONS):
        view = render_view(degrees, size)
        for i, scale in enumerate(SCALES):
            for k, shape in enumerate(SHAPES):
                store[i, k, o] = cast_object(view, shape, scale, size)
    return store.flatten(0, 2).numpy()


class Rooms(Dataset):
    """A look-alike of 3D Shapes: an object in a coloured room, 480000 images of 64 x 64 in colour.

    It has the factors and the order of 3D Shapes and similar images, but is a different data set: do not report
    numbers on it as numbers on 3D Shapes. `size` is the side in pixels.
    """

    factor_names = ("floor_hue", "wall_hue", "object_hue", "scale", "shape", "orientation")
    factor_sizes = (10, 10, 10, 8, 4, 15)
    factor_values = (HUES, HUES, HUES, SCALES, SHAPES, ORIENTATIONS)
    renderer_version = 2

    def __init__(self, *, size: int = 64) -> None:
        super().__init__()
        self.side = check_integer("size", size, 8, 256)
        self.name, self.shape, self.size = "rooms", (3, size, size), math.prod(self.factor_sizes)
        self.options = {"size": size}
        store = cached_array(
            f"rooms-v{self.renderer_version}-{size}", (480, _LAYERS, size * size), lambda: cast_store(size)
        )
        self.layers = Buffer(torch.from_numpy(store), persistent=False)
        self.hue_rgb = Buffer(torch.tensor([colorsys.hsv_to_rgb(h, 1.0, 1.0) for h in HUES]), persistent=False)
        self.sky_and_white = Buffer(torch.tensor([_SKY, (1.0, 1.0, 1.0)]), persistent=False)

    def images(self, index_B: Tensor) -> Tensor:
        factors_BK = self.factors(index_B)
        hues_B33 = self.hue_rgb[factors_BK[:, :3]]
        sky, white = self.sky_and_white[:, None, None].expand(2, len(index_B), 1, 3)
        colours_B35 = torch.cat([sky, hues_B33, white], dim=1).transpose(1, 2)
        pixels = blend(self.layers, index_B % len(self.layers), colours_B35, unit=_UNIT, zero=_ZERO)
        return pixels.reshape(-1, *self.shape)
