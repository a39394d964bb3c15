#!/usr/bin/env python
"""Run a trained Mask R-CNN or UperNet on pictures, folders of pictures, or videos.

  python tools/predict.py configs/maskrcnn_relu_base.py work_dirs/RUN photo.jpg
  python tools/predict.py configs/upernet_relu_base.py work_dirs/RUN/iter_160000.pth holiday/ --out predictions
  python tools/predict.py configs/maskrcnn_relu_base.py work_dirs/RUN street.mp4 --score-thr .5

For every picture the folder --out gets NAME.png with boxes and masks or colours of classes drawn, and NAME.json: class,
score, box (x1, y1, x2, y2) and mask (COCO's run-length code) of every object, or the share of every class. A segmentor
also writes NAME_labels.png, whose pixel values count the classes from 0. A video gives NAME.mp4 and one NAME.json with
an entry for each frame.

Names never collide: of x.jpg and x.png the second gives x_png.*, of x.jpg and x_labels.jpg the second x_labels_jpg.*
(x_labels.png is the label map of x.jpg). An --out where a result would overwrite one of the inputs is refused.

A path that does not exist is an error before anything runs; a picture that cannot be read is
one line, the others go on, and the exit code is 1.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmengine.config import DictAction


def parse_args() -> argparse.Namespace:
    """Flags."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="the config that the checkpoint was trained with")
    parser.add_argument("checkpoint", help="a .pth file, or a work dir (its newest checkpoint)")
    parser.add_argument("inputs", nargs="+", metavar="PICTURE", help="pictures, folders, videos")
    parser.add_argument("--out", type=Path, default=Path("predictions"), help="folder (default: predictions)")
    parser.add_argument("--score-thr", type=float, default=0.3, help="least score of a detection (default .3)")
    parser.add_argument("--device", help="cpu, cuda:0, ... (default: a GPU where there is one)")
    parser.add_argument("--cfg-options", nargs="+", action=DictAction, metavar="KEY=VALUE", help="override settings")
    return parser.parse_args()


def main() -> None:
    """Look at all inputs, load the model, predict."""
    args = parse_args()
    from rich.progress import track

    from lvit_dense.engine.predict import VIDEOS, Predictor, check_targets, find_sources
    from lvit_dense.experiment import configure
    from lvit_dense.experiment.launch import load_config, one_line_errors
    from lvit_dense.transfer import newest_checkpoint

    with one_line_errors():
        sources = find_sources(args.inputs)
        check_targets(sources, args.out)
        checkpoint = Path(args.checkpoint)
        if checkpoint.is_dir():
            checkpoint = newest_checkpoint(checkpoint)
        cfg = load_config(args.config, args.cfg_options)
        configure.drop_sources(cfg)
        configure.adopt_native_parts(cfg, str(checkpoint))
        predictor = Predictor(cfg, str(checkpoint), args.device, args.score_thr)
    unread = []
    for path, name in track(sources, description="predicting"):
        write = write_video if path.suffix.lower() in VIDEOS else write_picture
        try:
            write(predictor, path, args.out / name)
        except (ValueError, OSError) as error:  # of the picture: the model has passed its checks
            unread.append(path)
            print(f"error: {error}", file=sys.stderr)
    print(f"{len(sources) - len(unread)} of {len(sources)} predicted, in {args.out}")
    sys.exit(1 if unread else 0)


def write_picture(predictor: Any, path: Path, target: Path) -> None:
    """Predict one picture and write its files."""
    from PIL import Image

    from lvit_dense.datasets.loading import LoadPicture

    result = predictor(LoadPicture().transform({"img_path": str(path)})["img"])
    target.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(result.drawn).save(f"{target}.png")
    Path(f"{target}.json").write_text(json.dumps({"picture": str(path), **result.data}, indent=1))
    if result.labels is not None:
        deep = len(predictor.classes) > 256
        Image.fromarray(result.labels.astype("uint16" if deep else "uint8")).save(f"{target}_labels.png")


def write_video(predictor: Any, path: Path, target: Path) -> None:
    """Predict every frame and write a video and one JSON file."""
    import cv2

    capture = cv2.VideoCapture(str(path))
    rate = capture.get(cv2.CAP_PROP_FPS) or 25.0
    target.parent.mkdir(parents=True, exist_ok=True)
    writer, entries = None, []
    for frame in frames(capture):
        result = predictor(frame)
        if writer is None:
            size = (frame.shape[1], frame.shape[0])
            writer = cv2.VideoWriter(f"{target}.mp4", cv2.VideoWriter_fourcc(*"mp4v"), rate, size)
        writer.write(result.drawn[:, :, ::-1])
        entries.append({"frame": len(entries), **result.data})
    if writer is None:
        raise ValueError(f"{path}: no frame of this video can be read; expected a video that OpenCV decodes")
    writer.release()
    Path(f"{target}.json").write_text(json.dumps({"video": str(path), "fps": rate, "frames": entries}))


def frames(capture: Any) -> Iterator[Any]:
    """BGR frames of an open video, one at a time."""
    while True:
        there, frame = capture.read()
        if not there:
            return
        yield frame


if __name__ == "__main__":
    main()
