"""The list of studies: one file per paper."""

from unweave.studies import kingma2014, locatello2019, locatello2020, makhzani2015, tran2021, zhao2019
from unweave.studies.study import Study

_MODULES = (kingma2014, makhzani2015, locatello2019, locatello2020, tran2021, zhao2019)
STUDIES: dict[str, Study] = {module.STUDY.name: module.STUDY for module in _MODULES}
