"""English for the generators. Data only."""

from __future__ import annotations

from localctx.eval.english_facts import ENGLISH_FACTS
from localctx.eval.language import Language, Names, Prose, Wording, lines, terms

__all__ = ["ENGLISH"]

_TEMPLATES = lines("""
{time} the {person} carried the {adjective} {thing} to the {place}.
Nobody in the {place} could say why the {person} had painted the {thing} {colour}.
The {person} preferred {food} to {food}, whatever the {person} might think of it.
Beyond the {place} there was a {adjective} {place}, and beyond it nothing but {weather}.
{time} it began to smell of {food}, and the {person} closed the shutters.
The {thing} was {adjective}, but the {person} {verb} it all the same.
When the {weather} came, the {person} and the {person} {verb} the {thing} together.
A {adjective} {thing} stood in the {place}, half hidden by a {colour} {thing}.
The {person} wrote a {adjective} letter about the {thing} and never posted it.
It was said that the {person} had once {verb} a {thing} in the {place} for a wager.
{time} the whole {place} talked about {topic}, and the {person} listened.
The {person} liked to speak of {topic}, above all in the {place}.
In the {place} the {weather} lasted longer than the {person} had feared.
The {thing} had belonged to a {person} who knew a great deal about {topic}.
{time} a {adjective} {person} came through the {place} and {verb} the {thing}.
The {colour} {thing} and the {adjective} {thing} were sold to a {person} from the {place}.
What the {person} called {topic} was to the {person} only a matter of {food} and patience.
The road to the {place} was {adjective}, and the {weather} made it worse.
There were {colour} ribbons on the {thing}, which the {person} found {adjective}.
The {person} laughed, {verb} the {thing}, and went back to the {place}.
Without {topic} the {place} would have been a {adjective} spot, the {person} believed.
{time} the {person} forgot the {thing} in the {place} and had to walk back through the {weather}.
Every {person} in the {place} owned a {adjective} {thing}, and most of them a {colour} one.
The {person} tasted the {food}, made a face, and asked for {food} instead.
Between the {place} and the {place} the {person} met only a {adjective} {person}.
Some held that {topic} had ruined the {place}; the {person} blamed the {weather}.
The {thing} creaked whenever the {person} talked of {topic}.
They {verb} the {thing} {time_later}, so that the {person} would not notice.
A {person} who understands {topic} seldom needs a {thing}.
The {person} hung the {colour} {thing} in the {place}, where the {weather} could not reach it.
""")

_SLOTS = {
    "time": terms("""
        In the morning, Towards evening, At dusk, After supper, Before sunrise, During the holidays,
        On market day, Late that night, At first, Soon afterwards, In those days, Every so often,
        Once more, The next day, Around noon, In the slack season, On a quiet Sunday, As usual,
        Against all advice, To everyone's surprise
    """),
    "time_later": terms("""
        after dark, before breakfast, the week after, without a word, behind closed doors, in great haste,
        with much care, while it rained, on the sly, when the guests had left
    """),
    "person": terms("""
        gardener, teacher, notary, fisherman, carpenter, journalist, tailor, librarian, student, grocer,
        painter, engineer, cobbler, pharmacist, juggler, cook, miner, governess, sculptor, porter,
        butcher, cellist, surveyor, innkeeper, poet, milliner, blacksmith, sailor, actress, translator,
        waiter, philosopher, seamstress, coachman, astronomer, chambermaid, lawyer, clown, pilgrim,
        ropemaker, glazier, hunter, bookbinder, nurse, plumber, archivist, farmer, magician, watchmaker,
        trumpeter
    """),
    "place": terms("""
        courtyard, village, station, meadow, attic, harbour, market, greenhouse, cellar, schoolhouse,
        forest, garden, tavern, square, stable, workshop, park, corridor, vineyard, pavilion, suburb,
        marsh, barn, bazaar, promenade, hotel, canyon, terrace, kitchen garden, ballroom, waiting room,
        shipyard, arcade, hamlet, dunes, reading room, smithy, boathouse, rose garden, laundry,
        fairground, chapel, brewery, lagoon, granary, tea house, backyard, fortress, hayloft, wharf
    """),
    "thing": terms("""
        ladder, umbrella, wardrobe, kettle, lantern, basket, bicycle, suitcase, carpet, bench, mirror,
        barrel, chair, piano, tablecloth, hammer, bucket, coat, armchair, broom, cupboard, saddle, teapot,
        cradle, drum, cart, blanket, vase, stove, wheelbarrow, picture frame, accordion, footstool,
        fishing rod, anvil, quilt, sledge, hatbox, candlestick, rucksack, birdcage, flagpole,
        spinning top, bathtub, doormat, washboard, parasol, kite, rocking chair, typewriter
    """),
    "adjective": terms("""
        narrow, forgotten, handsome, crooked, splendid, dusty, ordinary, gloomy, curious, enormous,
        fragile, noisy, peculiar, shabby, sturdy, elegant, damp, modest, cheerful, ancient, doubtful,
        comfortable, solemn, neglected, famous, weathered, foreign, graceful, clumsy, pleasant, sleepy,
        tidy, wobbly, remarkable, draughty, humble, lonely, stubborn, precious, faded
    """),
    "colour": terms("""
        blue, green, yellow, white, grey, brown, purple, black, orange, pink, turquoise, beige, violet,
        ivory, olive, scarlet, amber, lilac, teal, maroon
    """),
    "food": terms("""
        soup, cheese, plums, mustard, lentils, cake, radishes, marmalade, noodles, cabbage, honeycomb,
        walnuts, pancakes, chestnuts, sausages, figs, buttermilk, cucumbers, gingerbread, onions,
        porridge, apricots, pickles, rhubarb, dumplings, raisins, spinach, omelette, cocoa, liquorice
    """),
    "weather": terms("""
        fog, drizzle, thunder, frost, wind, sunshine, haze, sleet, heat, hail, mist, rain, twilight, gale,
        thaw, drought, breeze, storm, dew, moonlight
    """),
    "topic": terms("""
        geometry, taxes, dancing, good manners, botany, railway timetables, astrology, wallpaper,
        politics, dreams, grammar, folk songs, perspective, etiquette, beekeeping manuals, cloud shapes,
        stamp albums, philosophy, varnish, weather proverbs, puppet plays, calligraphy, fencing,
        migration, marriage, superstition, carpentry, village gossip, arithmetic, fashion
    """),
    "verb": terms("""
        repaired, admired, borrowed, described, hid, cleaned, praised, lifted, moved, mended, examined,
        dropped, sketched, polished, rescued, locked away, wrapped up, displayed, ignored, photographed,
        tested, decorated, unpacked, inspected, turned round
    """),
}

_NAMES = Names(
    thing=(
        terms("""
            amphibious, velvet, radiant, hollow, nocturnal, gilded, frozen, spotted, mechanical,
            invisible, thirsty, electric, translucent, wandering, marble, feathered, magnetic, rusty,
            woollen, floating, copper, barefoot, luminous, paper, twelve-legged, sugared, inflatable,
            ticklish, volcanic, upholstered
        """),
        terms("""
            walrus, hedgehog, ostrich, lobster, panther, tortoise, pelican, badger, gazelle, octopus,
            falcon, beaver, iguana, moose, jellyfish, porcupine, leopard, flamingo, otter, scorpion,
            camel, penguin, lynx, salamander, vulture, raccoon, dolphin, peacock, weasel, armadillo
        """),
    ),
    person=(
        terms("""
            Agatha, Bruno, Celeste, Dorian, Elvira, Fergus, Greta, Hector, Imogen, Jasper, Katya, Lionel,
            Marisol, Nestor, Ottilie, Percival, Quentin, Rosalind, Silas, Tabitha, Ulrich, Vesna, Wilfred,
            Xenia, Yolanda, Zoltan, Ambrose, Bettina, Cyril, Delphine
        """),
        terms("""
            Ashdown, Birkett, Calloway, Drummond, Eversley, Fairclough, Goring, Hawtrey, Ingram, Jessop,
            Kingsley, Lockhart, Mortimer, Nightingale, Oakes, Pemberton, Quayle, Rutherford, Stapleton,
            Thackeray, Underhill, Vandermeer, Whitlock, Yardley, Zimmer, Abernathy, Blackwood, Cartwright,
            Dunstable, Ellery
        """),
    ),
    town=(
        terms("""
            Thorn, Brindle, Castor, Dray, Elmer, Fen, Gar, Hollin, Isling, Kester, Larch, Marsden, Nether,
            Osmond, Pell, Raven, Sax, Tarn, Ulver, Wyn
        """),
        terms("""
            bury, combe, dale, ford, gate, holm, leigh, mere, port, ridge, stead, thwaite, wick, worth,
            mouth, field
        """),
    ),
    jobs=terms("""
        acrobat, brewer, cartographer, dentist, electrician, florist, geologist, hairdresser, illustrator,
        jeweller, knitter, lifeguard, midwife, optician, pilot, radiologist, saddler, tanner, undertaker,
        violinist, welder, zoologist, auctioneer, botanist, chauffeur, detective, economist, falconer,
        goldsmith, interpreter
    """),
    words=terms("""
        acorn, bonnet, cavern, dagger, ember, fiddle, goblet, harvest, insect, jungle, kernel, ladle,
        magnet, napkin, oyster, pebble, quiver, ribbon, saucer, thimble, urn, velvet, walnut, yarn,
        zephyr, almond, beetle, candle, dolphin, easel, feather, glacier, hatchet, island, jacket, kitten,
        lemon, mitten, nettle, orchid, parcel, quartz, rafter, shovel, tunnel, vessel, window, basil,
        canoe, desert, engine, forest, garlic, hornet, icicle, jigsaw, lantern, marble, needle, otter,
        pepper, quilt, rocket, spiral, turtle, violet, whistle, anchor, bucket, cactus, daisy, eagle,
        falcon, guitar, helmet, ivory, juniper, ketchup, lizard, mosaic, noodle, onion, piano, raisin,
        saddle, tomato, umpire, valley, wagon, yogurt, apron, blanket, comet, drawer, elbow, fossil,
        gravel, hammock, inkwell, jasmine, kettle, locket, monsoon, nutmeg, oven, pillow, rooster, sponge,
        teapot, uncle, volcano, willow, airport, banjo, cushion, dragon, envelope, fountain, ginger
    """),
    code=terms("""
        ba, ce, di, fo, gu, ha, ke, li, mo, nu, pa, re, si, to, vu, za, bre, cla, dro, fli, gra, plo, sta,
        tru, vel
    """),
)

_WORDING = Wording(
    number_of="The registration number of the {thing} is {n}.",
    asks_number="What is the registration number of the {thing}?",
    seen_at="The {thing} was seen at milestone {n}.",
    asks_seen="At which milestones was the {thing} seen? Name all of them.",
    holds="The account of {person} holds {n} ducats.",
    asks_holds="How many ducats do the accounts of {people} hold?",
    is_set="Variable {x} is set to {n}.",
    is_set_to="Variable {x} is set to variable {y}.",
    asks_set="Which variables have the value {n}? Follow the assignments and name all of them.",
    born="{person} was born in {town}.",
    works="By trade {person} is a {job}.",
    asks_born="In which town was {person} born?",
    asks_job="What is the trade of the person who was born in {town}?",
    asks_common=(
        "Which ten words occur most often in the list?",
        "Name the 10 most common words of the list.",
        "What are the ten words that the list repeats most?",
        "Which price is given beside the word {absent} in the list?",
    ),
    asks_frequent=(
        "Which three coded words occur most often in the text?",
        "Name the 3 most frequent coded words.",
        "What are the three coded words that are repeated most?",
        "Which meaning of the coded word {absent} does the text give?",
    ),
    comma=", ",
    last_comma=" and ",
)

ENGLISH = Language("en", " ", Prose(_TEMPLATES, _SLOTS), ENGLISH_FACTS, _NAMES, _WORDING)
