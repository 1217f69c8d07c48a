"""The rewrites: each public function with a rule's name proposes that rule's repairs, the best one first."""
