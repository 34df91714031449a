"""The list of studies: one file per paper."""

from unweave.studies import locatello2019, locatello2020, tran2021
from unweave.studies.study import Study

STUDIES: dict[str, Study] = {study.name: study for study in (locatello2019.STUDY, locatello2020.STUDY, tran2021.STUDY)}
