// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The parts of which presets are made: their arguments, and a topology that grows.
#pragma once

#include "base/result.h"
#include "fabric/topology/topology.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace ib::fabric {

// `first,key=value,key=value`. Each value is taken once; what nobody takes is an error. The first
// error counts.
class PresetArguments {
 public:
  // `name`: of the preset, for messages.
  PresetArguments(std::string_view name, std::string_view text);

  // The argument without a key; empty if there is none.
  std::string_view take_first();
  bool has(std::string_view key) const;
  // Returns `absent` if the key is not there or an error was found.
  std::uint32_t take_number(std::string_view key, std::uint32_t absent, std::uint32_t least,
                            std::uint32_t most);
  // The same for the first argument, which must be there. `what`: what it is the number of.
  std::uint32_t take_first_number(const char* what, std::uint32_t least, std::uint32_t most);
  std::string_view take_text(std::string_view key);
  void fail(Status status, std::string reason);  // the first one counts
  bool is_good() const { return status_ == Status::Ok; }

  // To be called when all have been taken that there can be.
  Status finish(std::string& reason);

 private:
  struct Argument {
    std::string_view key, value;
    bool is_taken = false;
  };
  Argument* find(std::string_view key);
  std::uint32_t number(std::string_view what, std::string_view text, std::uint32_t least,
                       std::uint32_t most);

  std::string_view name_;
  std::vector<Argument> arguments_;
  std::vector<std::string_view> known_;
  Status status_ = Status::Ok;
  std::string reason_;
};

// Digits only. Returns false if the text is no number, or one of more than 32 bits.
bool parse_decimal(std::string_view text, std::uint32_t& value);

class TopologyBuilder {
 public:
  TopologyBuilder(std::uint8_t width, std::uint8_t speed) : width_(width), speed_(speed) {}

  // To be called once, before anything else. Fails if no subnet is so large: nothing is made then.
  Status begin(std::uint64_t hcas, std::uint64_t switches, std::uint64_t switch_ports,
               PresetArguments& arguments);
  std::uint32_t hca_count() const { return hcas_; }
  // Returns the index of the element.
  std::uint32_t add_switch(std::string description, std::uint32_t ports);
  void connect(TopologyEnd a, TopologyEnd b) {
    topology_.cables.push_back({a, b, width_, speed_, true});
  }
  Topology take() { return std::move(topology_); }

 private:
  Topology topology_;
  std::uint32_t hcas_ = 0;
  std::uint8_t width_;
  std::uint8_t speed_;
};

// Each takes its arguments and builds, unless these are wrong.
void build_back_to_back(PresetArguments& arguments, TopologyBuilder& builder);
void build_star(PresetArguments& arguments, TopologyBuilder& builder);
void build_fat_tree(PresetArguments& arguments, TopologyBuilder& builder);
void build_torus(PresetArguments& arguments, TopologyBuilder& builder);
void build_dragonfly(PresetArguments& arguments, TopologyBuilder& builder);
void build_random(PresetArguments& arguments, TopologyBuilder& builder);

}  // namespace ib::fabric
