"""Builds the package with the standard library alone (PEP 517, PEP 660), so that installing it
from a folder needs no package index. pip calls this; see pyproject.toml."""

import base64
import hashlib
import io
import pathlib
import re
import tarfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PACKAGE = "doorward"


def project():
    """Returns the strings of the table [project]."""
    text = (HERE / "pyproject.toml").read_text(encoding="utf-8").split("[project]\n")[1].split("\n[")[0]
    return dict(re.findall(r'^([a-z-]+) = "(.*)"$', text, re.MULTILINE))


def metadata():
    """Returns the core metadata 2.1: the headers, and README.md."""
    table = project()
    headers = {
        "Metadata-Version": "2.1", "Name": table["name"], "Version": table["version"], "Summary": table["description"],
        "License": "Apache-2.0", "Requires-Python": table["requires-python"], "Description-Content-Type": "text/markdown",
    }
    lines = "".join(f"{name}: {value}\n" for name, value in headers.items())
    return f"{lines}\n{(HERE / 'README.md').read_text(encoding='utf-8')}".encode()


def sources():
    """Returns the files of the package, with their names."""
    return {f"{PACKAGE}/{file.name}": file.read_bytes() for file in sorted((HERE / PACKAGE).iterdir()) if file.suffix in (".py", ".typed")}


def release():
    """Returns the name and the version, with which the names of the files begin."""
    table = project()
    return f"{table['name']}-{table['version']}"


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    return wheel(wheel_directory, sources())


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    return wheel(wheel_directory, {f"{PACKAGE}.pth": f"{HERE}\n".encode()})


def wheel(folder, files):
    """Writes a wheel, and returns its name."""
    info = f"{release()}.dist-info"
    files = {
        **files, f"{info}/METADATA": metadata(), f"{info}/LICENSE": (HERE / "LICENSE").read_bytes(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: doorward\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD"
    files[record] = "".join(f"{name},sha256={digest(text)},{len(text)}\n" for name, text in files.items()).encode() + f"{record},,\n".encode()
    name = f"{release()}-py3-none-any.whl"
    with zipfile.ZipFile(pathlib.Path(folder) / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for member, text in files.items():
            archive.writestr(zipfile.ZipInfo(member), text, zipfile.ZIP_DEFLATED)
    return name


def digest(text):
    return base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()


def build_sdist(sdist_directory, config_settings=None):
    files = {**sources(), "PKG-INFO": metadata(), **{name: (HERE / name).read_bytes() for name in ("LICENSE", "README.md", "backend.py", "pyproject.toml")}}
    name = f"{release()}.tar.gz"
    with tarfile.open(pathlib.Path(sdist_directory) / name, "w:gz", format=tarfile.PAX_FORMAT) as archive:
        for member, text in files.items():
            entry = tarfile.TarInfo(f"{release()}/{member}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    return name
