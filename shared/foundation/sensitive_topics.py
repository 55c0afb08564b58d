"""Recognise what is about security, credentials, money or health, in several languages.

An agent must ask before it acts on a preference about the first three, and what is about any of them does
not end because a model says so. Code decides this. A false alarm costs one question, or leaves an old fact
beside a new one, and a miss can cost somebody's account or life. The word lists are therefore broad. Only
words that agents often use for something else ("token", "key", "bank", "balance", "charge", "safe") must
stand beside a second word.
"""

import re

_ROOTS = r"""
passwords? passwds? passphrases? passcodes? pwd pin\scodes? login\w* log\sin sign[\s-]in credential\w*
secrets? api[\s_-]?keys?
(?:private|secret|ssh|gpg|pgp|access|encryption|signing|license|recovery|master)[\s_-]keys?
(?:access|auth\w*|api|bearer|refresh|session|security|id)[\s_-]tokens? jwts? oauth\w* sso 2fa mfa otps?
totp two[\s-]factor multi[\s-]factor authenti[ck]\w* authori[sz]\w* certificates? firewalls? vpns?
encrypt\w* decrypt\w* security permissions? sudo root\saccess admin(?:istrator)?\s(?:rights?|access)
vaults? keychains? phishing malware virus(?:es)? vulnerabilit\w* backdoors? ssn social\ssecurity
passports? identity\scard biometric\w* pay pays paid paying payments? payout\w* payroll purchas\w* buy
buys buying bought sell sells selling sold invoic\w* bill(?:s|ing|ed) money cash credit\s?cards?
debit\s?cards? cvv iban bank\saccounts? bank\stransfers? wire\stransfers?
(?:transfer|send|wire|move)\w*\s(?:money|funds?) bank(?:s|ing) funds? budgets? spend(?:s|ing)? spent
refund\w* subscri(?:be|bes|bed|ption|ptions) invest\w* stocks? crypto\w* bitcoins? btc ethereum wallets?
salar(?:y|ies) wages? loans? mortgages? tax(?:es)? financ\w* paypal venmo stripe donat\w* trading
pric(?:e|es|ing) checkout account\s(?:number|balance)s? dollars? euros?

pa(?:ss|ß)w(?:ort|örter)\w* kennw(?:ort|örter)\w* zugangsdaten anmeld\w* geheimnis\w* sicherheit\w*
berechtigung\w* verschlüssel\w* zahl(?:en|t|ung|ungen|te) bezahl\w* über(?:weis|wies)\w* kauf\w* gekauft
einkauf\w* rechnung(?:en)? geld\w* kreditkart\w* konto\w* kontostand steuer(?:n|erklärung) gehalt\w*
kredit\w* preis(?:e|en)? bank(?:konto|verbindung) \w*schlüssel

mots?\sde\spasse identifiants? sécurité pa(?:ie|ye|yer|iement)\w* ach(?:at|eter|ète)\w* argent factur\w*
carte\s(?:bancaire|de\scrédit) virements? comptes?\sbancaires? impôts? salaires? prix contraseñas?
claves? seguridad credencial\w* pag(?:o|os|ar|a|amos|amento|amentos|are|a) compr(?:a|as|ar|e|o) dinero
tarjetas? transferencias? cuenta\sbancaria facturas? impuestos? sueldos? precios? sicurezza credenziali
pagament\w* acquist\w* comprare denaro soldi bonific\w* carta\sdi\scredito stipendi\w* senhas? segurança
dinheiro cartão wachtwoord\w* beveiliging betaal\w* betal\w* geld kopen
\u043f\u0430\u0440\u043e\u043b\w* \u0431\u0435\u0437\u043e\u043f\u0430\u0441\u043d\u043e\u0441\u0442\w*
\u0434\u0435\u043d\u044c\u0433\w* \u0434\u0435\u043d\u0435\u0433 \u043f\u043b\u0430\u0442\w*
\u043e\u043f\u043b\u0430\u0442\w* \u043a\u0443\u043f\u0438\w* \u043f\u043e\u043a\u0443\u043f\w*
\u043f\u0435\u0440\u0435\u0432\u043e\u0434\w*\s\u0434\u0435\u043d\u0435\u0433
\u043a\u0430\u0440\u0442(?:\u0430|\u0443|\u044b|\u043e\u0439) \u0441\u0447\u0451\u0442\w*
\u0441\u0447\u0435\u0442
"""
_WORD = re.compile(rf"(?<!\w)(?:{'|'.join(_ROOTS.split())})(?!\w)", re.IGNORECASE)
_UNSPACED = re.compile(
    "密码|密碼|口令|安全|凭证|憑證|支付|付款|购买|購買|买|買|钱|錢|银行|銀行|信用卡|发票|發票|转账|轉帳|工资|"
    "パスワード|暗証番号|認証|セキュリティ|支払|購入|お金|クレジットカード|請求|振込|口座|비밀번호|보안|결제|구매|돈을|은행|"
    "كلمة المرور|كلمة السر|دفع|شراء|المال|סיסמ|תשלום|"
    "כסף|पासवर्ड|भुगतान|पैसे|รหัสผ่าน|จ่าย|ซื้อ|เงิน"
)
_HEALTH_ROOTS = r"""
sick(?:ness)?
doktor\w* allerg\w* anaphyla\w* epipens? intoleran\w* medic(?:al|ation|ations|ine|ines|ated|inal) meds
drugs? pills? dos(?:e|es|age|ages|ing) prescri(?:be|bes|bed|ption|ptions) pharmac\w* insulin\w*
antibiotic\w* penicillin\w* amoxicillin\w* ibuprofen\w* paracetamol\w* aspirin\w* warfarin\w* statins?
inhalers? \w*depressants? vaccin\w* immuni[sz]\w* diab[eéè]t\w* asthma\w* epilep\w* [eé]pilep\w* seizures?
migr(?:ä|a)[ei]n\w* cancers? tumou?rs? tumor\w* chemo\w* diseases? illness\w* syndrome\w* diagnos\w*
symptom\w* surger(?:y|ies) surgical hospital(?:s|i[sz]\w+)? clinics? doctors? physicians? dentists?
therap\w* psychiat\w* depressi\w* depress[ãa]o anxiety suicid\w* addict(?:s|ed|ion|ions)? alcoholi\w*
pregnan\w* disab(?:led|ilit\w*) handicap\w* wheelchairs? pacemakers? hiv hepatiti\w* co?eliac\w* gluten\w*
la[ck]tos\w* dementia alzheimer\w* parkinson\w* arthrit\w* health(?:care)? injur(?:y|ies|ed)
blood\s(?:type|group|pressure|sugar|thinner)s? heart\s(?:attack|condition|disease|failure)s?

\w*unverträglich\w* medikament\w* arznei\w* tabletten? dosis dosierung\w* apothek\w* impf\w* geimpft
krank\w* erkrank\w* \w*krankheit\w* gesundheit\w* \w*[aä]rzt(?:in|e|en|innen|lich\w*)? blutdruck\w*
blutgruppe\w* blutverdünn\w* herz(?:infarkt|fehler|schrittmacher)\w* \w*krebs schwanger\w* \w*behinder\w*
zöliakie diagnostizier\w* verletz\w* schmerzmittel\w*

médic\w* médecin\w* ordonnance\w* posologie malad\w* santé hôpita\w* vaccin\w* enceinte grossesse asthm\w*
tension\sartérielle groupe\ssanguin cardia\w* cœliaque\w* dépressi\w* bless(?:é|ée|és|ure|ures)

alérg\w* medicament\w* medicin\w* medicación m[eé]dic(?:o|a|os|as) receta\smédica dosis
farmaci\w* enferm\w* salud vacuna\w* embaraz\w* discapaci\w* asma asmátic\w* cáncer\w* depresión insulina\w*
(?:tensión|presión)\s(?:arterial|alta) grupo\ssanguíneo cel[ií]ac\w* pastillas? síntoma\w* lesión\w*

farmac\w* medico medici dos(?:i|aggio) malatti\w* malat[oaie] salute ospedal\w* incint[ae] gravidanz\w*
disabil\w* cancro pressione\s(?:alta|sanguigna|arteriosa) gruppo\ssanguigno intolleran\w* chirurg\w*

alergi\w* alérgic\w* remédio\w* receita\smédica doen(?:ça|ças|te|tes) saúde gr[aá]vid\w* deficiência\w*
câncer\w* cancro\w* pressão\s(?:alta|arterial) tipo\ssanguíneo sintoma\w*

medicijn\w* medicati\w* geneesmiddel\w* ziek\w* gezondheid\w* dokter\w* huisarts\w* artsen inenting\w*
gevaccineerd\w* zwanger\w* gehandicapt\w* kanker\w* bloeddruk\w* bloedgroep\w* suikerziekte\w* astma\w*
hart(?:aanval|kwaal|ziekte)\w*

läkemedel\w* medisin\w* läkare\w* læge\w* lege(?:n|r|ne)? sjuk\w* syg\w* syk(?:dom\w*|ehus\w*) hälsa\w*
sundhed\w* helse\w* gravid\w* blodtry[ck]+\w*

\u0430\u043b\u043b\u0435\u0440\u0433\u0438\w* \u043b\u0435\u043a\u0430\u0440\u0441\u0442\u0432\w*
\u0442\u0430\u0431\u043b\u0435\u0442\w* \u043f\u0440\u0435\u043f\u0430\u0440\u0430\u0442\w*
\u0434\u043e\u0437(?:\u0430|\u044b|\u0443|\u0435|\u043e\u0439|\u0438\u0440\u043e\u0432\u043a\w*)
\u0432\u0440\u0430\u0447\w* \u0434\u043e\u043a\u0442\u043e\u0440\w* \u0431\u043e\u043b\u044c\u043d\w*
\u0431\u043e\u043b\u0435(?:\u0435\u0442|\u044e|\u0437\u043d\u044c|\u0437\u043d\u0438|\u0437\u043d\u044c\u044e)
\u0437\u0434\u043e\u0440\u043e\u0432\u044c\w* \u0434\u0438\u0430\u0431\u0435\u0442\w*
\u0430\u0441\u0442\u043c\w* \u0440\u0430\u043a(?:\u0430|\u043e\u043c)?
\u044d\u043f\u0438\u043b\u0435\u043f\u0441\u0438\w* \u0431\u0435\u0440\u0435\u043c\u0435\u043d\u043d\w*
\u0438\u043d\u0432\u0430\u043b\u0438\u0434\w* \u043f\u0440\u0438\u0432\u0438\u0432\w*
\u0432\u0430\u043a\u0446\u0438\u043d\w* \u0438\u043d\u0441\u0443\u043b\u0438\u043d\w*
\u0434\u0430\u0432\u043b\u0435\u043d\u0438\w*
\u0433\u0440\u0443\u043f\u043f\w+\s\u043a\u0440\u043e\u0432\u0438
\u0434\u0435\u043f\u0440\u0435\u0441\u0441\u0438\w*
\u043d\u0435\u043f\u0435\u0440\u0435\u043d\u043e\u0441\u0438\u043c\w*
\u0434\u0438\u0430\u0433\u043d\u043e\u0437\w* \u0441\u0438\u043c\u043f\u0442\u043e\u043c\w*
\u043e\u043f\u0443\u0445\u043e\u043b\w*
"""
_HEALTH_WORD = re.compile(rf"(?<!\w)(?:{'|'.join(_HEALTH_ROOTS.split())})(?!\w)", re.IGNORECASE)
_HEALTH_UNSPACED = re.compile(
    "过敏|過敏|药|藥|病|医|醫|健康|哮喘|癌|怀孕|懷孕|妊娠|"
    "手术|手術|疫苗|血压|血壓|血圧|血型|胰岛素|胰島素|糖尿|残疾|アレルギー|薬|喘息|"
    "ワクチン|血液型|インスリン|処方|診断|障害者|알레르기|알러지|약물|의약|복용|"
    "처방|병원|질병|질환|건강|당뇨|천식|암에|암 진단|임신|수술|백신|"
    "혈압|혈액형|인슐린|의사|حساسية|دواء|أدوية|مرض|"
    "مريض|صحة|الصح|طبيب|مستشفى|سكري|الربو|سرطان|"
    "حامل|لقاح|ضغط الدم|فصيلة الدم|אלרגי|תרופ|"
    "מחלה|חולה|בריאות|רופא|סוכרת|אסתמה|סרטן|"
    "היריון|הריון|חיסון|एलर्जी|दवा|बीमार|"
    "स्वास्थ्य|डॉक्टर|अस्पताल|मधुमेह|दमा|कैंसर|"
    "गर्भ|टीका|แพ้|โรค|สุขภาพ|หมอ"
)
_DOSE = re.compile(r"\d\s?(?:mg|mcg|\u00b5g|\u03bcg|ml|iu)(?!\w)", re.IGNORECASE)
_AMOUNT = re.compile(
    r"[$€£¥₹₽₿]\s?\d|\d\s?(?:[$€£¥₹₽₿]|(?:usd|eur|gbp|chf|jpy|inr|cny|rub|btc)(?!\w))"
    r"|(?<!\w)(?:usd|eur|gbp|chf|jpy)\s?\d",
    re.IGNORECASE,
)
_PIN = re.compile(r"(?<!\w)PINs?(?!\w)")  # case matters: "pin" is an ordinary word
_CARD = re.compile(
    r"(?<!\d)\d{4}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}(?!\d)|(?<!\w)[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){3,7}"
)


# Ids are written `auto_pay`, `auto-pay`, `autoPay` or `auto/pay`.
_JOINTS = re.compile(r"[_/.:-]+|(?<=[a-z0-9])(?=[A-Z])")


def is_sensitive(text: str) -> bool:
    """Tell whether a text is about security, credentials or money."""
    return any(pattern.search(text) for pattern in (_WORD, _UNSPACED, _AMOUNT, _PIN, _CARD))


def is_about_health(text: str) -> bool:
    """Tell whether a text is about allergies, medication or anybody's health."""
    return any(pattern.search(text) for pattern in (_HEALTH_WORD, _HEALTH_UNSPACED, _DOSE))


def is_sensitive_name(name: str) -> bool:
    """Tell whether a key, or the id of a flow or a slot, is about them: its parts are words."""
    return is_sensitive(name) or is_sensitive(_JOINTS.sub(" ", name))
