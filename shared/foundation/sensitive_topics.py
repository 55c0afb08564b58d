"""Recognise preferences about security, credentials and money: an agent must ask before it acts on one.

Code decides this, whatever a model says. A false alarm costs one question, and a miss can cost somebody's
account. The word lists are therefore broad, in several languages. Only words that agents often use for
something else ("token", "key", "bank", "balance", "charge", "safe") must stand beside a second word.
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
    "كلمة المرور|كلمة السر|دفع|شراء|المال|סיסמ|תשלום|כסף|पासवर्ड|भुगतान|पैसे|รหัสผ่าน|จ่าย|ซื้อ|เงิน"
)
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


def is_sensitive_name(name: str) -> bool:
    """Tell whether a key, or the id of a flow or a slot, is about them: its parts are words."""
    return is_sensitive(name) or is_sensitive(_JOINTS.sub(" ", name))
