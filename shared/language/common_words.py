"""Words that often begin sentences and are not names.

Every sentence begins with a capital, so a word at its start counts as a name unless it is one of these,
in any inflection. Words that can be either ("Mark", "Will", "May", "Bill", "Rose", "Grant", "Art") are
left out on purpose: to insist on an ordinary word is harmless, to lose a name is not.
"""

from shared.search.text import stemmer

GENERIC_SUBJECTS = frozenset({"user", "agent", "assistant"})
"""Stems of words for the people in a memory. Nearly every memory has one, so they say nothing."""

_USER = """
nutzer nutzers nutzerin benutzer benutzers benutzerin anwender anwenders utilisateur utilisatrice usuario
usuaria utente usuário usuária utilizador utilizadora gebruiker
"""
USER_WORDS = frozenset(_USER.split())
"""Words for the user, which a model puts in the place of "I"."""

_FUNCTION = """
a an the this that these those i you he she it we they me him her us them my your his its our their
mine yours ours theirs who whom whose which what when where why how and or but nor so yet for of in on
at by to from with without into onto over under above below between among through during before after
since until till while as if unless because although though whereas than then there here is are was
were be been being am do does did has have had having can could should would must not no never none
nothing nobody neither both either each every all any some many much more most few less several other
another such same own only just also too very still already again once always often usually sometimes
rarely seldom ever now today tomorrow yesterday currently recently previously formerly later earlier
yes ok okay please let lets one ones about against across along around near via plus

der die das den dem des ein eine einen einem einer eines ich du er sie es wir ihr mich dich ihn uns euch
ihnen mein meine dein sein seine unser und oder aber denn wenn weil dass ob als wie wo wer was wann warum
nicht kein keine keinen keiner nie niemals immer oft manchmal auch nur noch schon sehr in im an am auf
aus bei beim mit nach von vom vor zu zum zur unter hinter zwischen gegen ohne durch ist sind war
waren hat haben hatte wird werden wurde kann soll muss darf bitte heute morgen gestern jetzt dann hier

le la les un une des du au aux je tu il nous vous ils elles mon ma mes ton ta tes sa ses notre
nos votre vos leur leurs et ou mais donc car si que qui quoi dont quand comment pourquoi ne pas plus jamais
toujours souvent parfois aussi très en dans sur sous avec sans chez est sont était ont avait
el los las unos unas yo nosotros ellos ellas mi mis tus sus nuestro y o pero porque
cuando donde como siempre nunca también muy con sin para por desde hasta es está tiene han
lo gli uno io lui lei noi voi loro mio suo sua e ma perché quando dove sempre anche
molto con senza di da tra fra sono era ho hanno um uma os as eu ele nós eles meu minha seu
mas porque onde sempre nunca também muito com sem são tem de het een ik jij hij zij wij mijn zijn
haar ons onze en maar omdat waar niet geen nooit altijd ook zeer bij met naar uit voor door om
\u044f \u0442\u044b \u043e\u043d \u043e\u043d\u0430 \u043e\u043d\u043e \u043c\u044b \u0432\u044b
\u043e\u043d\u0438 \u0438 \u0430 \u043d\u043e \u0438\u043b\u0438 \u0447\u0442\u043e
\u043a\u0430\u043a \u043a\u043e\u0433\u0434\u0430 \u0433\u0434\u0435 \u043d\u0435 \u043d\u0435\u0442
\u043d\u0438\u043a\u043e\u0433\u0434\u0430 \u0432\u0441\u0435\u0433\u0434\u0430 \u0432 \u043d\u0430
\u0441 \u043f\u043e \u043a \u0443 \u0434\u043b\u044f \u043e\u0442 \u0438\u0437 \u0431\u0435\u0437
\u044d\u0442\u043e \u044d\u0442\u043e\u0442 \u044d\u0442\u0430 \u0442\u0430\u043a\u0436\u0435
\u0438\u043d\u043e\u0433\u0434\u0430 \u0447\u0430\u0441\u0442\u043e
"""

_STARTERS = """
accept achieve act add address admit adopt advise agree aim allow analyze answer apologize appear
apply appreciate approach approve argue arrange arrive ask assign assume attend automate avoid aware back
base become begin behave believe belong bring build busy buy call care carry catch cause change charge
check choose claim clean clear close collect come commit communicate commute compare complain complete
concern confirm connect consider consist contain continue contribute control convert copy correct
cost count cover create cut deal decide decline define delay delete deliver demand depend deploy describe
design develop die discuss dislike document double drink drop eat edit emphasize enable
encourage end enjoy ensure enter establish exercise exist expect experience explain explore extend
face fail fall favor favour feel fetch file fill find finish fix follow force forget format fully generate
get give grow handle happen hate hear help hesitate hold host identify ignore implement import improve
include increase indicate inform insist install instruct intend interest introduce invest involve join keep
know lack last lead learn leave lend life like limit link listen live load locate log look lose love maintain make
manage mean measure meet mention merge migrate miss monitor mount move name need note notice notify occur
offer open operate order organize output own participate pass pause pay perform pick plan play point
possess practice prefer prepare present prevent print proceed process produce program promise propose
protect provide publish pull purchase push put query raise reach read realize receive recommend record
reduce refer reflect refuse regard reject relate release rely remain remember remind remove rename rent
repeat replace reply report request require research reserve resolve respond restart result retry return
review rewrite run save say schedule search see seek seem select sell send separate serve set share ship
show sign sit skip sleep solve speak specialize specify spend split stand start state stay stick stop store
strive struggle study submit succeed suffer suggest summarize supply support suppose take talk
teach tell tend test think throw track train transfer translate travel treat trust try turn
understand update upgrade upload use validate value verify view visit vote wait wake walk want watch wear
wish wonder work worry write

able according action additional agent alternative answer approach assistant available backup bad
better birthday bug build budget car case client code coffee colleague command comment
communication company config configuration contact content context conversation correction current
customer daily data database date day deadline decision default deployment detail device diet different
document documentation due early email employee employer entire error event example exception exact
existing family favorite favourite feature feedback file final finding first flight following food format
frequent friend full function goal group hard health high hobby holiday home
hotel house idea immediate important incident information initial input instance instead instruction
interested internal issue item job key kid known language large late latest lesson likely line list
little local location low main major manager meeting member memory message method minor mobile model
monthly morning multiple music neutral next normal note number open operation
original output overall package parent partner password person personal phone plan point policy
positive possible preference preferred present previous primary prior priority private problem process
product production project proper purpose question quick random rate ready real reason recent
recipe regular related release reminder request requirement response responsible role rule schedule
script second secondary secret section security separate server service session setting short sibling
similar simple single sister brother situation size software solution source special specific staff
standard status step strict strong subject success summary supplier support sure system table task
technical test text thing third ticket time tip title token tone tool top topic total trip type typical
update urgent usage user value vegan vegetarian version warning weather web website week weekday weekend
weekly wife husband daughter mother father child work worker workflow year

benutzer nutzer nutzerin kunde kundin mag möchte bevorzugt arbeitet wohnt lebt nutzt verwendet braucht
trinkt isst hasst liebt spricht antwortet antworten immer kurze lange keine
utilisateur utilisatrice préfère aime déteste habite travaille utilise veut boit mange parle
usuario usuaria prefiere gusta vive trabaja utiliza usa quiere bebe come habla odia
utente preferisce vive lavora usa vuole beve mangia parla odia
usuário utilizador prefere gosta mora trabalha quer fala
gebruiker woont werkt gebruikt wil drinkt eet spreekt houdt
\u043f\u043e\u043b\u044c\u0437\u043e\u0432\u0430\u0442\u0435\u043b\u044c
\u043b\u044e\u0431\u0438\u0442
\u043f\u0440\u0435\u0434\u043f\u043e\u0447\u0438\u0442\u0430\u0435\u0442
\u0436\u0438\u0432\u0451\u0442 \u0436\u0438\u0432\u0435\u0442
\u0440\u0430\u0431\u043e\u0442\u0430\u0435\u0442
\u0438\u0441\u043f\u043e\u043b\u044c\u0437\u0443\u0435\u0442 \u0445\u043e\u0447\u0435\u0442
\u043f\u044c\u0451\u0442 \u043f\u044c\u0435\u0442 \u0435\u0441\u0442
"""

_TITLE_WORDS = "a an the and or of in on at to for with by from i users agents"


def grammar() -> frozenset[str]:
    """Return the words of the grammar of several languages: articles, pronouns, prepositions, auxiliaries."""
    return _GRAMMAR


def is_function_word(word: str) -> bool:
    """Tell whether a capitalised word is no name even within a sentence, as in titles."""
    return word.casefold() in _TITLED


def is_common_opener(word: str) -> bool:
    """Tell whether sentences often begin with a word, in any case and inflection."""
    lower = word.casefold()
    return lower in _GRAMMAR or lower in _TITLED or stemmer.stem(lower) in _STEMS


_TITLED = GENERIC_SUBJECTS | frozenset(_TITLE_WORDS.split())
_GRAMMAR = frozenset(_FUNCTION.split())
_STEMS = frozenset(stemmer.stem(word) for word in _STARTERS.split())
