"""Facts in English, no two about the same, each with a question in its words, one in others, and the fact in
these. Data only.

None of them is one that retrieval heads are chosen by (verify.probes): heads were not fitted
to what they find here.
"""

from __future__ import annotations

from localctx.eval.language import rows

__all__ = ["ENGLISH_FACTS"]

ENGLISH_FACTS = rows("""
The vault of Harlow's bank opens with the combination {n}.
Which combination opens the vault of Harlow's bank?
What digits unlock the strong room where the money is kept?
Whoever dials {n} unlocks the strong room where the money is kept.

The yearly rent of the mill at Denby is {n} crowns.
How high is the yearly rent of the mill at Denby?
What does the tenant pay per annum for the place where grain is ground?
For grinding grain beside the weir the tenant pays his landlord {n} coins per annum.

Captain Osei's ferry carries {n} lifejackets.
How many lifejackets does Captain Osei's ferry carry?
What number of safety vests is there aboard the passenger ship?
Aboard the passenger ship of the skipper from Accra hang {n} safety vests.

The telescope on Mount Arden weighs {n} kilograms.
How much does the telescope on Mount Arden weigh?
How heavy is the instrument for watching stars?
The instrument for watching stars, up on its summit, presses on its floor with a mass of {n} kilos.

Doctor Almeida's surgery treated {n} patients last winter.
How many patients did Doctor Almeida's surgery treat last winter?
What number of sick people were cared for by the physician in the cold season?
In the cold season {n} sick people were cared for by the physician from Lisbon.

The manuscript of the opera has {n} pages.
How many pages does the manuscript of the opera have?
Over what number of sheets is the handwritten music drama spread?
The handwritten music drama is spread over {n} sheets.

The pipeline from Ashford is {n} metres long.
How many metres long is the pipeline from Ashford?
What length of tubing brings the liquid across the land?
The tubing that brings fuel across the land runs for {n} yards from one end to the other.

Beatrice sold her violin for {n} guilders.
For how many guilders did Beatrice sell her violin?
What sum did the musician get when parting with the stringed instrument?
Parting with the stringed instrument brought the lady musician the sum of {n} coins.

The orchard behind the abbey has {n} pear trees.
How many pear trees does the orchard behind the abbey have?
What number of fruit-bearing plants grow by the monks' house?
By the monks' house, out at the back, {n} fruit-bearing plants grow in rows.

The bakery on Quarry Lane ordered {n} sacks of flour.
How many sacks of flour did the bakery on Quarry Lane order?
What amount of ground wheat was requested by the maker of bread?
The maker of bread beside the stone pit asked the miller for {n} bags.

The locksmith's licence carries the serial number {n}.
What serial number does the locksmith's licence carry?
Under which digits was the permit of the key maker issued?
The key maker's permit was issued under the digits {n}.

The lighthouse lamp burns {n} litres of oil a month.
How many litres of oil does the lighthouse lamp burn a month?
What quantity of fuel does the beacon on the coast use up every four weeks?
The beacon on the coast uses up {n} measures of fuel every four weeks.

The apiary of Valdris has {n} hives.
How many hives does the apiary of Valdris have?
What number of homes are there for honey-making insects?
For honey-making insects there are {n} homes on the slope above the fjord.

The tunnel under the glacier cost {n} thousand francs.
How many thousand francs did the tunnel under the glacier cost?
What was the price of the passage dug beneath the ice?
Digging the passage beneath the ice swallowed {n} banknotes of the largest kind.

The library of the seminary lost {n} volumes in the fire.
How many volumes did the library of the seminary lose in the fire?
What number of books were destroyed when the priests' school burned?
When the priests' school burned, {n} books were destroyed.

The postmaster's telegram was filed under number {n}.
Under which number was the postmaster's telegram filed?
Which figure identifies the wired message in the archive?
In the archive the wired message of the head of the mail office is identified by the figure {n}.

The choir of Saint Brannoc has sung {n} concerts.
How many concerts has the choir of Saint Brannoc sung?
What number of public performances have the vocalists of the parish given?
The vocalists of the parish have given {n} public performances.

The dam above Corrick holds back {n} tonnes of water.
How many tonnes of water does the dam above Corrick hold back?
What mass of liquid is kept in check by the barrier across the river?
The barrier across the river, up the glen, keeps a mass of {n} units of liquid in check.

The weaver's loom needs {n} threads.
How many threads does the weaver's loom need?
What number of strands must be strung on the machine that makes cloth?
On the machine that makes cloth {n} strands must be strung.

The shepherd counted {n} lambs in spring.
How many lambs did the shepherd count in spring?
What number of young sheep were tallied after the snow melted?
After the snow melted the herdsman tallied {n} young sheep.

The chess club's trophy was insured for {n} pounds.
For how many pounds was the chess club's trophy insured?
What is the cover in case the cup of the board game players gets stolen?
The board game players' cup is covered for {n} sovereigns in case it gets stolen.

The airship flew {n} kilometres without landing.
How many kilometres did the airship fly without landing?
What distance was covered non-stop by the balloon with engines?
The balloon with engines covered a distance of {n} units non-stop.

The hospital canteen serves {n} meals a week.
How many meals does the hospital canteen serve a week?
What number of dishes do the cooks at the clinic prepare every seven days?
The cooks at the clinic prepare {n} dishes every seven days.

The slate quarry employs {n} stonecutters.
How many stonecutters does the slate quarry employ?
What is the size of the workforce at the pit where rock is dug?
At the pit where roofing rock is dug the workforce is {n} strong.

The museum paid {n} dollars for the bronze horse.
How many dollars did the museum pay for the bronze horse?
What was spent by the gallery on the metal statue of an animal?
The gallery spent {n} banknotes on the metal statue of an animal.

The submarine dived to {n} fathoms.
To how many fathoms did the submarine dive?
How deep did the underwater vessel go?
Going down, the underwater vessel stopped at a depth of {n}.

The widow inherited {n} acres from her uncle.
How many acres did the widow inherit from her uncle?
How much land was left by a relative to the woman whose husband had died?
To the woman whose husband had died a relative left land, {n} measures of it.

The printer's press used {n} bottles of red ink.
How many bottles of red ink did the printer's press use?
What number of flasks with crimson colouring were consumed in making the books?
Making the books consumed {n} flasks of crimson colouring.

The theatre's new curtain has {n} silver buttons.
How many silver buttons does the theatre's new curtain have?
What number of shiny fasteners are sewn on the fabric that hides the stage?
On the fabric that hides the stage {n} shiny fasteners have lately been sewn.

The veterinarian vaccinated {n} horses in the valley.
How many horses did the veterinarian vaccinate in the valley?
What number of animals were given an injection by the livestock doctor?
The livestock doctor gave an injection to {n} animals between the two hills.

The cathedral's bell rings {n} times a year.
How many times a year does the cathedral's bell ring?
How often per annum is the great chime of the bishop's church heard?
The great chime of the bishop's church is heard on {n} occasions per annum.

The parachutist jumped from {n} feet.
From how many feet did the parachutist jump?
At what altitude did the skydiver leave the plane?
The skydiver left the plane at an altitude of {n}.
""")
