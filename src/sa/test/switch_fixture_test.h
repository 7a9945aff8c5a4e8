// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// SwitchTest: a subnet of two switches (end ports 2 and 3) with one adapter each (0 and 1).
#pragma once

#include "sa/test/server_fixture_test.h"

namespace ib::sa {

class SwitchTest : public SaTest {
 protected:
  static constexpr std::size_t kSwitch = 2;

  SwitchTest() {
    subnet.make_switch(2, 3);
    subnet.make_switch(3, 17);
    subnet.links = {{{0, 1}, {2, 1}}, {{1, 1}, {3, 1}}, {{2, 2}, {3, 2}}, {{2, 3}, {3, 17}}};
    subnet.ports[2].linear_top = 70;
  }

  std::uint16_t lid(std::size_t port) const { return subnet.ports[port].lid; }
  template <class Record>
  Answer table(std::uint16_t attribute, std::uint64_t components, const Record& wanted,
               std::uint64_t sm_key = 0, std::size_t from = 0) {
    return ask(from, method::kGetTable, attribute, components, wanted, sm_key);
  }
  template <class Record>
  std::vector<Record> all(std::uint16_t attribute, std::uint64_t components, const Record& wanted,
                          std::uint64_t sm_key = 0) {
    return records<Record>(table(attribute, components, wanted, sm_key));
  }
};

}  // namespace ib::sa
