"""Facts to plant in a text, each with a question that shares its words and one that shares none. Data only.

No two facts are about the same thing, so that one passage alone answers. Knows no model.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KINDS", "PROBES", "Probe"]

KINDS = ("asked", "paraphrased")


@dataclass(frozen=True, slots=True)
class Probe:
    """fact: a sentence that stands nowhere else · asked: a question in its words · paraphrased: the same
    without them.
    """

    fact: str
    asked: str
    paraphrased: str

    def question(self, kind: str) -> str:
        """The question of that kind."""
        return self.asked if kind == KINDS[0] else self.paraphrased


_ROWS = """
The secret code of Lisbon is 48213.
What is the secret code of Lisbon?
Which cipher belongs to Portugal's capital?

The courier hid the brass key under the third stair.
Where did the courier hide the brass key?
In which spot is the thing that opens the lock concealed?

Doctor Almeida was born in a village near Porto in 1931.
When was Doctor Almeida born?
In what year did the physician's life begin?

The committee postponed its meeting because the river had flooded the hall.
Why did the committee postpone its meeting?
What kept the board from gathering as planned?

Every lamp in the lighthouse burns olive oil.
What do the lamps in the lighthouse burn?
Which fuel lights the beacon on the coast?

The yearly rent of the mill is nine hundred crowns.
How much is the yearly rent of the mill?
What does the tenant pay per annum for grinding grain?

Beatrice sold her violin to pay for the voyage to Chile.
Why did Beatrice sell her violin?
How was the trip across the ocean financed by the musician?

The bridge at Halden collapsed after an earthquake.
Why did the bridge at Halden collapse?
What made the crossing over the water fall down?

Captain Osei commands the ferry Northern Star.
Who commands the ferry Northern Star?
What is the name of the skipper of the passenger ship?

The vault opens only when two officers turn their dials at noon.
When does the vault open?
At what time of day can the strong room be entered?

Cheese from Valdris ripens for fourteen months in a cave.
How long does cheese from Valdris ripen?
For what period is the dairy product aged underground?

The painter mixed crushed beetles into her red.
What did the painter mix into her red?
Which insects gave the artist's colour its tone?

Room 417 of the hotel has been locked since the fire.
Which room of the hotel has been locked since the fire?
What part of the guest house is no longer in use after the blaze?

The treaty gives the fishermen of Skagen the right to dry nets on the dunes.
What right does the treaty give the fishermen of Skagen?
Which privilege did the agreement grant to those who catch herring?

Lightning struck the oldest oak in the park on a Tuesday.
On which day did lightning strike the oldest oak?
When was the ancient tree hit during the storm?

The password of the archive is marigold.
What is the password of the archive?
Which word lets one into the records?

The baker on Gull Street closes his shop during the eclipse.
When does the baker on Gull Street close his shop?
On what occasion is no bread sold by that tradesman?

Inspector Varga found a silver button in the ashes.
What did Inspector Varga find in the ashes?
Which object did the detective discover among the burnt remains?

The expedition lost four sledges in a crevasse.
How many sledges did the expedition lose?
What number of vehicles for snow fell into the ice?

Honey from the abbey is exported to Norway alone.
To which country is honey from the abbey exported?
Where abroad do the monks ship what their bees make?

The orchestra tunes to a cracked bell.
What does the orchestra tune to?
From which object do the musicians take their pitch?

Miss Tanaka keeps a tame heron in the greenhouse.
What does Miss Tanaka keep in the greenhouse?
Which bird lives among the plants of the lady?

The tower clock stopped at eleven minutes past six.
At what time did the tower clock stop?
What do the hands on the steeple show since they stand still?

Passengers must declare seeds at the customs house of Riga.
What must passengers declare at the customs house?
Which goods do travellers have to report when they arrive in Latvia?

The loan was repaid with three shiploads of salt.
With what was the loan repaid?
How did the debtor settle what was owed?

Professor Nkemelu proved the theorem on the back of a menu.
Where did Professor Nkemelu prove the theorem?
On what did the mathematician write down the demonstration?

The well in the courtyard is forty metres deep.
How deep is the well in the courtyard?
What distance does a bucket travel to reach the water?

Wolves returned to the valley after the railway was abandoned.
When did wolves return to the valley?
What happened before the predators came back?

The winning horse was called Cardamom.
What was the winning horse called?
Which name did the champion of the race bear?

The apothecary prescribed willow bark against the fever.
What did the apothecary prescribe against the fever?
Which remedy was the patient given for a high temperature?

Glass from the Murano furnace turns green because of iron in the sand.
Why does glass from the furnace turn green?
What causes the tint of the panes that are melted there?

The mayor resigned after losing a bet about the weather.
Why did the mayor resign?
What led the head of the town to step down?

Tickets for the puppet theatre cost two copper coins.
How much do tickets for the puppet theatre cost?
What is the price of admission to see the marionettes?

The library lends maps for three days only.
For how long does the library lend maps?
How soon must a borrowed chart be given back?

Sergeant Quill speaks Icelandic with the prisoners.
Which language does Sergeant Quill speak with the prisoners?
In what tongue does the soldier talk to the captives?

The monument is made of grey slate from Wales.
What is the monument made of?
Which stone was used for the memorial?

The dam was inspected by divers every second autumn.
How often was the dam inspected by divers?
At what interval did people look at the barrage from under water?

A parrot woke the crew before the mutiny.
Who woke the crew before the mutiny?
What animal roused the sailors ahead of their revolt?

The coal barge Adelheid sank off Dover with its cargo.
Where did the coal barge Adelheid sink?
Near which port did the freight vessel go down?

The emergency exit leads through the wine cellar.
Where does the emergency exit lead through?
By what route can people flee the building?

Ines won the chess tournament without losing a queen.
Who won the chess tournament?
Which player came first at the board game?

The observatory bought its telescope from a bankrupt circus.
From whom did the observatory buy its telescope?
Who was the former owner of the instrument for watching stars?

The wedding was held in a barn because the church had no roof.
Why was the wedding held in a barn?
What prevented the couple from marrying at the altar?

The factory whistle sounds twice on pay day.
How often does the factory whistle sound on pay day?
What signal tells the workers that wages are ready?

The surgeon left her instruments to the university of Tartu.
To whom did the surgeon leave her instruments?
Which institution in Estonia inherited the medical tools?

Strangers are forbidden to ring the gong at the gate.
What are strangers forbidden to do at the gate?
Which act is not allowed to outsiders at the entrance?

The pipeline carries brine from the mine to Ashford.
What does the pipeline carry to Ashford?
Which liquid flows through the tubes from the pit?

The lost manuscript was found inside a church organ.
Where was the lost manuscript found?
What had the missing text been concealed in?
"""

PROBES = tuple(Probe(*row.split("\n")) for row in _ROWS.strip().split("\n\n"))
