// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A search for records of the topology: the request, the ports that it is about, and the records
// that have the components that it selects [IBA1 15.4.6].
#pragma once

#include "sa/records/components.h"
#include "sa/server/request.h"

#include <cstdint>
#include <cstring>
#include <optional>

namespace ib::sa {

struct Search {
  const Topology& topology;
  const Requester& requester;
  const Request& request;
  RecordList& records;
};

// A search for records of one kind.
template <class Record>
class RecordSearch {
 public:
  // `components`: of the request, those that the attribute compares by a rule of its own left out.
  RecordSearch(const Search& search, std::uint64_t components)
      : search_(search),
        wanted_(decode_some<Record>(search.request.record)),
        bytes_wanted_(encode(wanted_)),
        components_(components) {}
  explicit RecordSearch(const Search& search) : RecordSearch(search, search.request.components) {}

  const Record& wanted() const { return wanted_; }
  bool names(std::uint64_t bits) const { return (search_.request.components & bits) == bits; }

  // Adds a record if it has what the request selects. Returns false if there is no room for more.
  bool add(const Record& record) const { return add(record, components_); }
  bool add(const Record& record, std::uint64_t components) const {
    const auto bytes = encode(record);
    return !matches(search_.request.attribute, components, bytes_wanted_, bytes) ||
           search_.records.add(bytes);
  }

  // The LID of a record of `end`. Any of a port's LIDs names it.
  std::uint16_t lid_of(const EndPort& end, std::uint64_t lid_bit) const {
    return names(lid_bit) ? wanted_.lid : end.lid;
  }
  // Calls `each` with the ports in service that the request is about, the one at a LID or all, seen
  // by the requester or not. Ends when it returns false.
  template <class Each>
  void for_each_end(std::uint64_t lid_bit, Each each) const {
    if (names(lid_bit)) {
      if (const std::optional<EndPort> end = search_.topology.find_lid(wanted_.lid)) {
        (void)each(*end);
      }
      return;
    }
    for_all_ends(each);
  }
  template <class Each>
  void for_all_ends(Each each) const {
    for (std::uint32_t i = 0; i < search_.topology.port_count(); ++i) {
      const std::optional<EndPort> end = search_.topology.port(i);
      if (end && !each(*end)) return;
    }
  }
  // The same for ports that the requester sees, also those of switches without addresses. `only`:
  // the number of the port.
  template <class Each>
  void for_each_port(std::uint64_t lid_bit, std::optional<std::uint8_t> only, Each each) const {
    for_each_end(lid_bit, [&](const EndPort& end) { return for_each_port_of(end, only, each); });
  }
  template <class Each>
  bool for_each_port_of(const EndPort& end, std::optional<std::uint8_t> only, Each each) const {
    const unsigned last = end.is_switch() ? end.others : end.number;
    for (unsigned number = only.value_or(end.number); number <= only.value_or(last); ++number) {
      const auto port = search_.topology.node_port(end, static_cast<std::uint8_t>(number));
      if (port && search_.requester.may_see(*port) && !each(*port)) return false;
    }
    return true;
  }

 private:
  const Search& search_;
  Record wanted_;
  std::array<std::byte, Record::kSize> bytes_wanted_;
  std::uint64_t components_;
};

// An attribute of subnet management as a structure.
template <class Attribute>
std::optional<Attribute> read(const Topology& topology, const NodePort& port,
                              std::uint16_t attribute, std::uint32_t modifier) {
  const std::optional<mad::SmpData> data = topology.attribute(port, attribute, modifier);
  if (!data) return std::nullopt;
  Attribute result;
  static_assert(sizeof result <= sizeof *data && std::is_trivially_copyable_v<Attribute>);
  std::memcpy(&result, data->data(), sizeof result);
  return result;
}

}  // namespace ib::sa
