"""The facts of english_facts in German, in the same order. Data only."""

from __future__ import annotations

from localctx.eval.language import rows

__all__ = ["GERMAN_FACTS"]

GERMAN_FACTS = rows("""
Der Tresor der Harlow-Bank öffnet sich mit der Kombination {n}.
Mit welcher Kombination öffnet sich der Tresor der Harlow-Bank?
Welche Ziffern entriegeln den gesicherten Raum, in dem das Geld liegt?

Die Jahrespacht der Mühle in Denby beträgt {n} Kronen.
Wie viele Kronen beträgt die Jahrespacht der Mühle in Denby?
Was zahlt der Mieter in zwölf Monaten für das Haus, wo man Korn mahlt?

Die Fähre von Kapitän Osei führt {n} Schwimmwesten mit.
Wie viele Schwimmwesten führt die Fähre von Kapitän Osei mit?
Welche Menge an Rettungskleidung gibt es an Bord des Passagierschiffs?

Das Teleskop auf dem Berg Arden wiegt {n} Kilogramm.
Wie viele Kilogramm wiegt das Teleskop auf dem Berg Arden?
Wie schwer ist das Gerät, mit dem man Sterne beobachtet?

Die Praxis von Doktor Almeida behandelte letzten Winter {n} Patienten.
Wie viele Patienten behandelte die Praxis von Doktor Almeida letzten Winter?
Um welche Zahl von Kranken kümmerte sich die Ärztin in der kalten Jahreszeit?

Das Manuskript der Oper hat {n} Seiten.
Wie viele Seiten hat das Manuskript der Oper?
Auf welche Zahl von Blättern verteilt sich das handgeschriebene Musikdrama?

Die Pipeline aus Ashford misst {n} Meter.
Wie viele Meter misst die Pipeline aus Ashford?
Welche Länge an Röhren bringt die Flüssigkeit durch das Land?

Beatrice verkaufte ihre Geige für {n} Gulden.
Für wie viele Gulden verkaufte Beatrice ihre Geige?
Welchen Betrag erhielt die Musikerin, als sie sich vom Saiteninstrument trennte?

Der Obstgarten hinter der Abtei hat {n} Birnbäume.
Wie viele Birnbäume hat der Obstgarten hinter der Abtei?
Welche Zahl fruchttragender Gewächse steht beim Haus der Mönche?

Die Bäckerei in der Steingasse bestellte {n} Säcke Mehl.
Wie viele Säcke Mehl bestellte die Bäckerei in der Steingasse?
Welche Menge gemahlenen Weizens verlangte der Hersteller von Brot?

Die Lizenz des Schlossers trägt die Seriennummer {n}.
Welche Seriennummer trägt die Lizenz des Schlossers?
Unter welchen Ziffern wurde die Erlaubnis des Türöffners ausgestellt?

Die Lampe des Leuchtturms verbrennt {n} Liter Öl im Monat.
Wie viele Liter Öl verbrennt die Lampe des Leuchtturms im Monat?
Welche Menge Brennstoff verbraucht das Seezeichen an der Küste in vier Wochen?

Die Imkerei von Valdris hat {n} Bienenstöcke.
Wie viele Bienenstöcke hat die Imkerei von Valdris?
Welche Zahl an Behausungen gibt es für Honig sammelnde Insekten?

Der Tunnel unter dem Gletscher kostete {n} tausend Franken.
Wie viele tausend Franken kostete der Tunnel unter dem Gletscher?
Wie teuer war der Durchgang, den man in das Eis grub?

Die Bibliothek des Seminars verlor im Feuer {n} Bände.
Wie viele Bände verlor die Bibliothek des Seminars im Feuer?
Welche Zahl von Büchern wurde zerstört, als die Priesterschule brannte?

Das Telegramm des Postmeisters liegt unter der Nummer {n}.
Unter welcher Nummer liegt das Telegramm des Postmeisters?
Welche Ziffern bezeichnen die gekabelte Nachricht im Archiv?

Der Chor von Sankt Brannoc sang {n} Konzerte.
Wie viele Konzerte sang der Chor von Sankt Brannoc?
Welche Zahl öffentlicher Auftritte gaben die Stimmen der Pfarrei?

Die Talsperre über Corrick staut {n} Tonnen Wasser.
Wie viele Tonnen Wasser staut die Talsperre über Corrick?
Welche Masse an Flüssigkeit hält die Mauer im Fluss zurück?

Der Webstuhl der Weberin braucht {n} Fäden.
Wie viele Fäden braucht der Webstuhl der Weberin?
Welche Zahl von Garnen muss auf die Maschine, die Stoff herstellt?

Der Schäfer zählte im Frühling {n} Lämmer.
Wie viele Lämmer zählte der Schäfer im Frühling?
Auf welche Zahl junger Wolltiere kam man nach der Schneeschmelze?

Der Pokal des Schachklubs ist für {n} Pfund versichert.
Für wie viele Pfund ist der Pokal des Schachklubs versichert?
Was wird ersetzt, wenn man den Siegerbecher der Brettspieler stiehlt?

Das Luftschiff flog {n} Kilometer ohne Landung.
Wie viele Kilometer flog das Luftschiff ohne Landung?
Welche Strecke legte der Ballon mit Motoren am Stück zurück?

Die Kantine des Krankenhauses serviert {n} Mahlzeiten in der Woche.
Wie viele Mahlzeiten serviert die Kantine des Krankenhauses in der Woche?
Welche Zahl von Gerichten bereiten die Köche der Klinik in sieben Tagen zu?

Der Schieferbruch beschäftigt {n} Steinmetze.
Wie viele Steinmetze beschäftigt der Schieferbruch?
Wie groß ist die Belegschaft der Grube, in der man Fels abbaut?

Das Museum zahlte {n} Dollar für das bronzene Pferd.
Wie viele Dollar zahlte das Museum für das bronzene Pferd?
Was gab die Galerie aus, um die metallene Tierstatue zu bekommen?

Das Unterseeboot tauchte auf {n} Faden hinab.
Auf wie viele Faden tauchte das Unterseeboot hinab?
Wie tief kam das Schiff, das sich im Meer verbirgt?

Die Witwe erbte von ihrem Onkel {n} Morgen.
Wie viele Morgen erbte die Witwe von ihrem Onkel?
Welche Fläche ging von einem Verwandten an die Frau, deren Mann gestorben war?

Die Presse des Druckers brauchte {n} Flaschen rote Tinte.
Wie viele Flaschen rote Tinte brauchte die Presse des Druckers?
Welche Zahl von Gefäßen mit purpurner Farbe ging bei den Büchern drauf?

Der neue Vorhang des Theaters hat {n} silberne Knöpfe.
Wie viele silberne Knöpfe hat der neue Vorhang des Theaters?
Welche Zahl glänzender Verschlüsse ist an den Stoff genäht, der die Bühne verdeckt?

Die Tierärztin impfte im Tal {n} Pferde.
Wie viele Pferde impfte die Tierärztin im Tal?
Welche Zahl von Rössern bekam eine Spritze von der Veterinärin?

Die Glocke des Doms läutet {n} Mal im Jahr.
Wie viele Male im Jahr läutet die Glocke des Doms?
Wie oft hört man in zwölf Monaten das Geläut der Bischofskirche?

Die Fallschirmspringerin sprang aus {n} Fuß Höhe.
Aus wie viel Fuß Höhe sprang die Fallschirmspringerin?
In welchem Abstand vom Boden verließ die Sportlerin das Flugzeug?
""")
