"""DR6: security, credentials and money need the user's permission, whatever a model says."""

import pytest

from shared.foundation.sensitive_topics import is_sensitive

SENSITIVE = """
Never write my password into a chat
Keep passwords in the vault
My PIN stays out of the notes
Rotate the API key every month
Use the ssh key on the laptop
The access token belongs in the environment
Log in with two-factor only
Signs in through SSO
Wants MFA on every account
Approves permissions by hand
Never runs anything with sudo
Wants everything encrypted
Ask before you change the firewall
Send credentials by mail never
Security updates at once
Wants to be asked before payments
Pay invoices on Fridays
Invoices below 200 EUR may be settled right away
Buys train tickets in first class
Never purchase without asking
Keep spending low
Orders up to $50 are fine
Everything over 100€ needs a call
20 usd for lunch
Card 4111 1111 1111 1111
IBAN DE89 3704 0044 0532 0130 00
Transfers money on Mondays
Refunds go the same way
Cancel the subscription before it renews
Wants to know the price first
Taxes are done by Sam
Does not invest in crypto
Gib nie mein Passwort weiter
Zugangsdaten nie per Mail
Überweisungen nur mit Rückfrage
Kauft nur mit Rechnung
Bezahlt am liebsten bar
Ne jamais donner le mot de passe
Préfère payer par carte bancaire
No compartas mi contraseña
Quiere pagar con tarjeta
Non condividere la sicurezza
Quer pagamento por cartão
Deel nooit het wachtwoord
Никогда не показывай пароль
Спрашивай перед оплатой
不要保存密码
付款前先问我
パスワードは保存しない
購入の前に確認する
비밀번호를 저장하지 마세요
لا تحفظ كلمة المرور
""".strip().splitlines()

ORDINARY = """
Prefers short answers
Wants plain sentences, no bullet points
Uses dark mode
Likes tea after 15:00
Key points first, details later
Counts tokens of each prompt
Pin the message on top
Uses a mechanical keyboard
Prefers Swift to Kotlin
Answers in German, please
Trade-offs belong in the summary
Weighs the balance of both sides
Sits on the bench by the river bank
No calls before 10
Always give sources
Code without comments
Uses metric units
Meetings on Tuesdays only
Explain it like to a child
Wants PDF, never Word
Kontrolliert jede Antwort
Antworte kurz und sachlich
Préfère le café noir
Le gustan las respuestas cortas
Preferisce risposte brevi
Любит короткие ответы
喜欢简短的回答
短い返事が好き
""".strip().splitlines()


@pytest.mark.parametrize("text", SENSITIVE)
def test_a_sensitive_text_is_recognised(text: str) -> None:
    assert is_sensitive(text)
    assert is_sensitive(text.upper())


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_text_is_not_sensitive(text: str) -> None:
    assert not is_sensitive(text)
