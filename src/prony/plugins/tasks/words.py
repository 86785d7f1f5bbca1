"""Plain English words, for prompts where nobody counts tokens."""

from __future__ import annotations

_TEXT = """
about above across after again against almost alone along already also always among another answer around asked
away back bank base bear beat became because become been before began behind being below best better between
beyond bird black blood blue board boat body book both bottom bread break bridge bright bring broad brother brown
build burn business cabin call came camp capital captain care carry case cat cause center certain chance change
chart chief child circle city class clean clear climb clock close cloth cloud coast cold color common complete
contain control cook cool copper corn corner cost cotton count country course cover create cross crowd current
dance dark daughter dead deal dear decide deep degree depend describe desert develop differ dinner direct discover
distant divide doctor dollar double down draw dream dress drive drop dry during each ear early earth east easy
edge effect egg eight either else end enemy energy engine enough enter equal even evening event ever every exact
example except excite exercise expect eye face fact fair fall family famous far farm fast father favor fear feed
feel feet fell felt few field fight figure fill final find fine finger finish fire first fish fit five flat floor
flow flower fly follow food foot force forest form forward found four free fresh friend front fruit full fun game
garden gas gather gave general gentle girl give glad glass gold gone good got govern grand grass gray great green
grew ground group grow guess guide hair half hand happen happy hard hat head hear heart heat heavy held help here
high hill history hold hole home hope horse hot hour house huge human hundred hunt hurry ice idea imagine inch
include increase indicate industry insect instant iron island job join joy jump just keep kept key kill kind king
knew know lady lake land language large last late laugh law lay lead learn least leave led left leg length less
letter level lie life lift light like line liquid list listen little live locate log lone long look lost lot loud
love low machine made magnet main major make man many map mark market mass master match material matter may mean
measure meat meet melody men metal method middle might mile milk million mind mine minute miss mix modern molecule
moment money month moon more morning most mother motion mount mountain mouth move much multiply music must name
nation natural nature near necessary neck need neighbor never new next night nine noise noon nor north nose note
nothing notice noun now number numeral object observe occur ocean off offer office often oil old once one only
open operate opposite orange order organ original other our out over own oxygen page paint pair paper paragraph
parent part particular party pass past path pattern pay people perhaps period person phrase pick picture piece
pitch place plain plan plane planet plant play please plural poem point poor populate port pose position possible
post pound power practice prepare present press pretty print probable problem process produce product proper
property protect prove provide pull push put quart question quick quiet quite quotient race radio rail rain raise
ran range rather reach read ready real reason receive record red region remember repeat reply represent require
rest result rich ride right ring rise river road rock roll room root rope rose round row rub rule run safe sail
salt same sand sat save saw say scale school science score sea search season seat second section see seed seem
segment select self sell send sense sent sentence separate serve set settle seven several shall shape share sharp
she sheet shell shine ship shoe shop shore short should shoulder shout show side sight sign silent silver similar
simple since sing single sister sit six size skill skin sky sleep slip slow small smell smile snow soft soil
soldier solution solve some son song soon sound south space speak special speech speed spell spend spoke spot
spread spring square stand star start state station stay stead steam steel step stick still stone stood stop store
story straight strange stream street stretch string strong student study subject substance subtract success such
sudden suffix sugar suggest suit summer sun supply support sure surface surprise swim syllable symbol system table
tail take talk tall teach team teeth tell temperature ten term test than thank that the their them then there
these they thick thin thing think third this those though thought thousand three through throw thus tie time tiny
tire together told tone too took tool top total touch toward town track trade train travel tree triangle trip
trouble truck true try tube turn twenty two type under unit until up usual valley value vary verb very view
village visit voice vowel wait walk wall want war warm was wash watch water wave way wear weather week weight well
went were west what wheel when where whether which while white who whole whose why wide wife wild will win wind
window wing winter wire wish with woman women wonder wood word work world would write written wrong yard year
yellow yes yet you young your
"""
WORDS = tuple(_TEXT.split())
