"""German for the generators. Data only.

Who acts is feminine and what is acted on neuter, since their nominative and accusative are alike.
"""

from __future__ import annotations

from localctx.eval.german_facts import GERMAN_FACTS
from localctx.eval.language import Language, Names, Prose, Wording, lines, terms

__all__ = ["GERMAN"]

_TEMPLATES = lines("""
{time} {verb} die {person} das {adjective} {thing} {place}.
Niemand {place} wusste, warum die {person} das {thing} {colour} gestrichen hatte.
Die {person} mochte {food} lieber als {food}, was auch immer die {person} davon hielt.
{time} roch es nach {food}, und die {person} schloss die Fensterläden.
Das {thing} war {quality}, aber die {person} {verb} es trotzdem.
Als {weather} kam, waren die {person} und die {person} noch {place}.
Ein {quality} wirkendes {thing} stand {place}, halb verdeckt von {weather}.
Die {person} schrieb einen langen Brief über das {thing} und schickte ihn nie ab.
Es hieß, die {person} habe {place} einmal um ein {thing} gewettet.
{time} redeten alle {place} über {topic}, und die {person} hörte zu.
Die {person} sprach gern über {topic}, vor allem {place}.
{place_start} hielt sich {weather} länger, als die {person} befürchtet hatte.
Das {thing} hatte einer {person} gehört, die viel von {topic} verstand.
{time} kam eine {adjective} {person} vorbei und {verb} das {thing}.
Das {adjective} {thing} und das {adjective} {thing} standen {place} zum Verkauf.
Was die {person} {topic} nannte, war für die {person} nur eine Frage von {food} und Geduld.
Die {person} lachte, {verb} das {thing} und blieb {place}.
Ohne {topic} wäre es {place} recht langweilig, glaubte die {person}.
{time} vergaß die {person} das {thing} {place} und musste noch einmal zurück.
Jede {person} {place} besaß ein {thing}, und die meisten von ihnen strichen es {colour}.
Die {person} probierte {food}, verzog das Gesicht und verlangte {food}.
Manche meinten, {topic} habe alles verdorben; die {person} gab {weather} die Schuld.
Das {thing} knarrte, sobald die {person} von {topic} sprach.
Eine {person}, die sich mit {topic} auskennt, braucht selten ein {thing}.
""")

_SLOTS = {
    "time": terms("""
        Am Morgen, Gegen Abend, In der Dämmerung, Nach dem Essen, Vor Sonnenaufgang, In den Ferien,
        Am Markttag, Spät in der Nacht, Zuerst, Bald danach, In jenen Tagen, Hin und wieder, Noch einmal,
        Am nächsten Tag, Gegen Mittag, An einem stillen Sonntag, Wie gewöhnlich, Gegen jeden Rat,
        Zur allgemeinen Überraschung
    """),
    "person": terms("""
        Gärtnerin, Lehrerin, Notarin, Fischerin, Tischlerin, Journalistin, Schneiderin, Bibliothekarin,
        Studentin, Händlerin, Malerin, Ingenieurin, Schusterin, Apothekerin, Gauklerin, Köchin,
        Gouvernante, Bildhauerin, Pförtnerin, Metzgerin, Cellistin, Landvermesserin, Wirtin, Dichterin,
        Hutmacherin, Schmiedin, Schauspielerin, Kellnerin, Philosophin, Näherin, Kutscherin, Astronomin,
        Anwältin, Pilgerin, Glaserin, Jägerin, Buchbinderin, Archivarin, Bäuerin, Zauberin, Uhrmacherin,
        Trompeterin
    """),
    "place": terms("""
        im Hof, im Dorf, am Bahnhof, auf der Wiese, auf dem Dachboden, im Hafen, auf dem Markt,
        im Gewächshaus, im Keller, im Schulhaus, im Wald, im Garten, in der Schenke, im Stall,
        in der Werkstatt, im Park, im Flur, im Weinberg, im Pavillon, in der Vorstadt, am Moor,
        in der Scheune, auf der Promenade, im Hotel, in der Schlucht, auf der Terrasse, im Ballsaal,
        im Wartesaal, auf der Werft, in den Dünen, im Lesesaal, im Bootshaus, in der Wäscherei,
        in der Kapelle, in der Brauerei, im Teehaus, in der Festung, am Kai
    """),
    "place_start": terms("""
        Im Hof, Im Dorf, Am Bahnhof, Auf der Wiese, Im Hafen, Im Wald, Im Garten, Im Weinberg, Am Moor,
        Auf der Promenade, In der Schlucht, Auf der Terrasse, In den Dünen, Am Kai
    """),
    "thing": terms("""
        Fahrrad, Klavier, Fass, Kissen, Bild, Regal, Tischtuch, Fenster, Sofa, Bett, Akkordeon, Ruder,
        Zelt, Seil, Brett, Tablett, Messer, Glas, Schild, Tor, Boot, Karussell, Puppenhaus, Schaukelpferd,
        Spinnrad, Waschbrett, Notenpult, Fernrohr, Tintenfass, Hufeisen, Bügeleisen, Segel, Netz, Gemälde,
        Windrad, Radio, Gewand, Sparschwein, Vogelhaus, Schachbrett
    """),
    "adjective": terms("""
        schmale, vergessene, schöne, krumme, prächtige, staubige, gewöhnliche, düstere, merkwürdige,
        riesige, zerbrechliche, laute, sonderbare, schäbige, stabile, feine, feuchte, schlichte,
        fröhliche, uralte, zweifelhafte, bequeme, feierliche, berühmte, verwitterte, fremde, anmutige,
        plumpe, angenehme, schläfrige
    """),
    "quality": terms("""
        schmal, schön, krumm, prächtig, staubig, gewöhnlich, düster, merkwürdig, riesig, zerbrechlich,
        sonderbar, schäbig, stabil, fein, feucht, schlicht, uralt, bequem, verwittert, plump, wacklig,
        kostbar
    """),
    "colour": terms("""
        blau, grün, gelb, weiß, grau, braun, violett, schwarz, orange, rosa, türkis, beige, olivgrün,
        dunkelblau
    """),
    "food": terms("""
        Suppe, Käse, Pflaumen, Senf, Linsen, Kuchen, Radieschen, Marmelade, Nudeln, Kohl, Walnüsse,
        Pfannkuchen, Kastanien, Würste, Feigen, Buttermilch, Gurken, Lebkuchen, Zwiebeln, Haferbrei,
        Aprikosen, Rhabarber, Knödel, Rosinen, Spinat, Kakao, Lakritze
    """),
    "weather": terms("""
        Nebel, Nieselregen, Donner, Frost, Wind, Sonnenschein, Dunst, Schneeregen, Hagel, Zwielicht,
        Sturm, Tauwetter, Mondlicht, Hochwasser
    """),
    "topic": terms("""
        Geometrie, Steuern, Tanzschritten, Botanik, Fahrplänen, Astrologie, Tapeten, Politik, Träumen,
        Grammatik, Volksliedern, Etikette, Wolkenformen, Briefmarken, Philosophie, Firnis, Wetterregeln,
        Puppenspielen, Kalligraphie, Aberglauben, Dorfklatsch, Arithmetik, Mode
    """),
    "verb": terms("""
        reparierte, bewunderte, holte, beschrieb, versteckte, putzte, lobte, hob, verschob, flickte,
        untersuchte, zeichnete, polierte, rettete, verpackte, zeigte, prüfte, schmückte, suchte, drehte
    """),
}

_NAMES = Names(
    thing=(
        terms("""
            amphibisches, samtenes, strahlendes, hohles, nachtaktives, vergoldetes, gefrorenes,
            geflecktes, mechanisches, unsichtbares, durstiges, elektrisches, durchsichtiges, wanderndes,
            marmornes, gefiedertes, magnetisches, rostiges, wollenes, schwebendes, kupfernes, barfüßiges,
            leuchtendes, papiernes, zwölfbeiniges, gezuckertes, aufblasbares, kitzliges, vulkanisches,
            gepolstertes
        """),
        terms("""
            Walross, Eichhörnchen, Känguru, Murmeltier, Krokodil, Nashorn, Zebra, Kamel, Lama, Faultier,
            Chamäleon, Wiesel, Rebhuhn, Warzenschwein, Stinktier, Seepferdchen, Gürteltier, Schnabeltier,
            Gnu, Alpaka, Rentier, Wildschwein, Schaf, Huhn, Glühwürmchen, Kaninchen, Frettchen, Mufflon,
            Okapi, Perlhuhn
        """),
    ),
    person=(
        terms("""
            Agathe, Bruno, Cäcilie, Dietmar, Elfriede, Friedrich, Greta, Hektor, Ilse, Jonas, Käthe,
            Leopold, Mathilde, Norbert, Ottilie, Pankraz, Quirin, Rosalinde, Silvester, Theodora, Ulrich,
            Veronika, Wilfried, Xaver, Yvonne, Zacharias, Ambros, Brunhilde, Cornelius, Dorothea
        """),
        terms("""
            Achterberg, Birkenfeld, Clausnitzer, Dornbusch, Eberhard, Falkenstein, Grünwald, Hohenadl,
            Immelmann, Jungblut, Kesselring, Lichtenberg, Mühlbauer, Nachtigall, Obermaier, Pfefferkorn,
            Quandt, Rosenstiel, Steinhauer, Tannhäuser, Unruh, Vogelsang, Wachsmann, Zimmerling,
            Abendroth, Blumenthal, Dahlmann, Engelhardt, Finkenstein, Gerstenberg
        """),
    ),
    town=(
        terms("""
            Ahren, Birken, Daun, Erlen, Falken, Gräfen, Hasel, Immen, Kaiser, Linden, Mörs, Nieder, Ober,
            Pappel, Rauen, Sonnen, Tannen, Ulmen, Wolfs, Ziegen
        """),
        terms("""
            berg, bach, dorf, feld, furt, hausen, heim, hofen, kirchen, leben, moor, rode, stadt, stein,
            tal, walde
        """),
    ),
    jobs=terms("""
        Akrobat, Brauer, Kartograph, Zahnarzt, Elektriker, Florist, Geologe, Friseur, Illustrator,
        Juwelier, Bademeister, Optiker, Pilot, Radiologe, Sattler, Gerber, Bestatter, Geiger, Schweißer,
        Zoologe, Auktionator, Botaniker, Chauffeur, Detektiv, Ökonom, Falkner, Goldschmied, Dolmetscher,
        Taucher, Buchhalter
    """),
    words=terms("""
        Eichel, Haube, Höhle, Dolch, Glut, Fiedel, Kelch, Ernte, Insekt, Dschungel, Kern, Kelle, Magnet,
        Serviette, Auster, Kiesel, Köcher, Schleife, Untertasse, Fingerhut, Urne, Samt, Walnuss, Garn,
        Mandel, Käfer, Kerze, Delfin, Staffelei, Feder, Gletscher, Beil, Insel, Jacke, Kätzchen, Zitrone,
        Handschuh, Nessel, Orchidee, Paket, Quarz, Balken, Schaufel, Tunnel, Gefäß, Fenster, Basilikum,
        Kanu, Wüste, Motor, Knoblauch, Hornisse, Eiszapfen, Puzzle, Laterne, Murmel, Nadel, Otter,
        Pfeffer, Decke, Rakete, Spirale, Schildkröte, Veilchen, Pfeife, Anker, Eimer, Kaktus, Adler,
        Falke, Gitarre, Helm, Elfenbein, Wacholder, Eidechse, Mosaik, Zwiebel, Rosine, Sattel, Tomate,
        Tal, Wagen, Joghurt, Schürze, Komet, Schublade, Ellbogen, Fossil, Kies, Hängematte, Jasmin,
        Kessel, Medaillon, Monsun, Muskat, Ofen, Kissen, Hahn, Schwamm, Teekanne, Onkel, Vulkan
    """),
    code=terms("""
        ba, ze, di, fo, gu, ha, ke, li, mo, nu, pa, re, si, to, wu, za, bre, kla, dro, fli, gra, plo, sta,
        tru, wel
    """),
)

_WORDING = Wording(
    number_of="Ein {thing} hat die Registriernummer {n}.",
    asks_number="Welche Registriernummer hat ein {thing}?",
    seen_at="Ein {thing} wurde am Meilenstein {n} gesehen.",
    asks_seen="An welchen Meilensteinen wurde ein {thing} gesehen? Nenne alle.",
    holds="Auf dem Konto von {person} liegen {n} Dukaten.",
    asks_holds="Wie viele Dukaten liegen auf den Konten von {people}?",
    is_set="Die Variable {x} wird auf {n} gesetzt.",
    is_set_to="Die Variable {x} wird auf die Variable {y} gesetzt.",
    asks_set="Welche Variablen haben den Wert {n}? Folge den Zuweisungen und nenne alle.",
    born="{person} kam in {town} zur Welt.",
    works="Von Beruf ist {person} {job}.",
    asks_born="In welcher Stadt kam {person} zur Welt?",
    asks_job="Welchen Beruf hat, wer in {town} zur Welt kam?",
    asks_common=(
        "Welche zehn Wörter stehen am häufigsten in der Liste?",
        "Nenne die 10 häufigsten Wörter der Liste.",
        "Welche zehn Wörter wiederholt die Liste am meisten?",
        "Welcher Preis steht in der Liste neben dem Wort {absent}?",
    ),
    asks_frequent=(
        "Welche drei Codewörter stehen am häufigsten im Text?",
        "Nenne die 3 häufigsten Codewörter.",
        "Welche drei Codewörter werden am meisten wiederholt?",
        "Welche Bedeutung des Codeworts {absent} nennt der Text?",
    ),
    comma=", ",
    last_comma=" und ",
)

GERMAN = Language("de", " ", Prose(_TEMPLATES, _SLOTS), GERMAN_FACTS, _NAMES, _WORDING)
