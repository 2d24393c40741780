"""A lesson for a course site (Moodle, ILIAS, Canvas …): a package of SCORM 1.2, which is a zip file
with a manifest and the lesson's own file. What the site is told of the answers is in `course.js`.

Source: ADL, SCORM 1.2 Content Aggregation Model (2001), section 2.3.
"""

from __future__ import annotations

import io
import zipfile
from xml.etree import ElementTree

from .page import PageContent

PACKAGING = "http://www.imsproject.org/xsd/imscp_rootv1p1p2"
SCORM = "http://www.adlnet.org/xsd/adlcp_rootv1p2"
FILE = "index.html"
# The same lesson gives the same bytes: the earliest moment that a zip file knows.
MOMENT = (1980, 1, 1, 0, 0, 0)


def scorm_package(lesson: PageContent, html: str) -> bytes:
    """The package of a lesson whose file is `html`."""
    package = io.BytesIO()
    with zipfile.ZipFile(package, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in (("imsmanifest.xml", _manifest(lesson)), (FILE, html)):
            entry = zipfile.ZipInfo(name, MOMENT)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16  # who unpacks it on a server may show it
            archive.writestr(entry, text.encode("utf-8", "replace"))
    return package.getvalue()


def _manifest(lesson: PageContent) -> str:
    """What a course site reads first: one organization with one item, the lesson's file."""
    # XML has no place for characters that control a terminal
    title = "".join(character for character in lesson.title if character.isprintable())
    root = ElementTree.Element(
        "manifest",
        {
            "identifier": f"gptviz-{lesson.name}",
            "version": "1.0",
            "xmlns": PACKAGING,
            "xmlns:adlcp": SCORM,
        },
    )

    def add(parent: ElementTree.Element, tag: str, text: str = "", **attributes: str) -> None:
        ElementTree.SubElement(parent, tag, attributes).text = text

    metadata = ElementTree.SubElement(root, "metadata")
    add(metadata, "schema", "ADL SCORM")
    add(metadata, "schemaversion", "1.2")
    organizations = ElementTree.SubElement(root, "organizations", default="course")
    organization = ElementTree.SubElement(organizations, "organization", identifier="course")
    add(organization, "title", title)
    item = ElementTree.SubElement(organization, "item", identifier="lesson", identifierref="file")
    add(item, "title", title)
    resources = ElementTree.SubElement(root, "resources")
    about = {"identifier": "file", "type": "webcontent", "adlcp:scormtype": "sco", "href": FILE}
    resource = ElementTree.SubElement(resources, "resource", about)
    add(resource, "file", href=FILE)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, "unicode")}'
