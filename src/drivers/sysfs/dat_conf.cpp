// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "drivers/sysfs/dat_conf.h"

#include <fmt/format.h>

namespace ib::drivers {
namespace {

std::string entry(const std::string& name, const char* provider, const std::string& place) {
  return fmt::format("ofa-v2-{} u2.0 nonthreadsafe default libdaplo{}.so.2 dapl.2.0 \"{}\" \"\"\n",
                     name, provider, place);
}

}  // namespace

std::string dat_conf(const fabric::Node& node) {
  std::string text;
  std::size_t number = 0;
  for (const fabric::Address& address : node.addresses) {
    const std::string place = verbs::address_text(address.ip) + " 0";
    text += entry(fmt::format("ib{}", number++), "fa", place);
  }
  for (const fabric::Hca& hca : node.hcas) {
    for (const fabric::Port& port : hca.ports) {
      const std::string name = fmt::format("{}-{}", hca.name, port.number);
      const std::string place = fmt::format("{} {}", hca.name, port.number);
      text += entry(name, "scm", place) + entry(name + "u", "ucm", place);
    }
  }
  return text;
}

}  // namespace ib::drivers
