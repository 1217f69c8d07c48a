import logging
from pathlib import Path
from zipfile import is_zipfile

import torch

LOGGER = logging.getLogger(__name__)


def check_dataset(data, autodownload=True):
    root = ""
    if isinstance(data, (str, Path)) and is_zipfile(data):
        download(data)
        data = next(Path("data").rglob("*.yaml"))
        root, autodownload = data.parent, False
    if isinstance(data["names"], (list, tuple)):
        data["names"] = dict(enumerate(data["names"]))
    path = Path(root or data.get("path") or "")
    if not path.is_absolute():
        data["path"] = path
    for k in "train", "val", "test":
        if data.get(k):
            data[k] = str(path / data[k])
    val, source = (data.get(x) for x in ("val", "download"))
    if val:
        val = [Path(x).resolve() for x in (val if isinstance(val, list) else [val])]
        if not all(x.exists() for x in val):
            LOGGER.info("not found")
            if not source or not autodownload:
                raise Exception("no data set")
            download(source)
    return data


def download(source):
    LOGGER.info(f"downloading {source}")
    torch.hub.download_url_to_file(source, "data.zip")


def smart_optimizer(model, lr):
    return torch.optim.SGD(model.parameters(), lr=lr)
