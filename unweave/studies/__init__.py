"""The list of studies: one file per paper."""

from unweave.studies import kingma2014, locatello2019, locatello2020, makhzani2015, tran2021, zhao2019
from unweave.studies.study import Study

STUDIES: dict[str, Study] = {
    study.name: study
    for study in (
        kingma2014.STUDY,
        makhzani2015.STUDY,
        locatello2019.STUDY,
        locatello2020.STUDY,
        tran2021.STUDY,
        zhao2019.STUDY,
    )
}
