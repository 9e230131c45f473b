"""CSV for programs, spreadsheets among them."""

from fscost.report.machine import csv_of


def test_a_text_that_a_spreadsheet_would_run_stays_text() -> None:
    rows = [["=1+1", "+1", "-1", "@x", "\x1b=1"], ["a=b", "", -1, 1.5, None]]
    lines = ["a,b,c,d,e", "'=1+1,'+1,'-1,'@x,\ufffd=1", "a=b,,-1,1.5,"]
    assert csv_of(list("abcde"), rows).splitlines() == lines
