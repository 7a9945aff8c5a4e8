// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A host channel adapter, as programs see one, and the list of those of a node.
#pragma once

#include "fabric/port.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace ib::fabric {

struct Hca {
  std::string name;              // softib0; unique per node
  std::uint32_t index = 0;       // in the whole fabric
  std::uint32_t node = 0;        // index of its node
  std::uint32_t first_port = 0;  // index of port 1 in the port table of device memory
  std::uint64_t node_guid = 0;
  std::span<Port> ports;  // a piece of the graph's array
  bool present = true;    // false: taken out; its place stays
  bool asleep = false;
};

// The HCAs of a node, in the order in which they came. Others point to them: none moves, none goes.
class HcaList {
 public:
  template <class T>
  class Iterator {
   public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Hca;
    using difference_type = std::ptrdiff_t;
    using pointer = T*;
    using reference = T&;

    Iterator() = default;
    explicit Iterator(Hca* const* at) : at_(at) {}
    T& operator*() const { return **at_; }
    T* operator->() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator&) const = default;

   private:
    Hca* const* at_ = nullptr;
  };

  std::size_t size() const { return hcas_.size(); }
  Hca& operator[](std::size_t i) { return *hcas_[i]; }
  const Hca& operator[](std::size_t i) const { return *hcas_[i]; }
  Iterator<Hca> begin() { return Iterator<Hca>(hcas_.data()); }
  Iterator<Hca> end() { return Iterator<Hca>(hcas_.data() + hcas_.size()); }
  Iterator<const Hca> begin() const { return Iterator<const Hca>(hcas_.data()); }
  Iterator<const Hca> end() const { return Iterator<const Hca>(hcas_.data() + hcas_.size()); }

 private:
  friend class Fabric;
  std::vector<Hca*> hcas_;
};

}  // namespace ib::fabric
