// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// RandomChoice: what a seed decides.
#pragma once

#include <initializer_list>
#include <random>

namespace ib::cm::test {

class RandomChoice {
 public:
  explicit RandomChoice(unsigned seed) : random_(seed) {}

  unsigned bits() { return static_cast<unsigned>(random_()); }
  unsigned number(unsigned below) { return static_cast<unsigned>(random_() % below); }
  bool happens(unsigned percent) { return number(100) < percent; }
  unsigned one_of(std::initializer_list<unsigned> values) {
    return values.begin()[number(static_cast<unsigned>(values.size()))];
  }

 private:
  std::mt19937 random_;
};

}  // namespace ib::cm::test
