// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Setup: brings the ports and switches of a subnet from what they have to what they are to have
// [IBA1 14.4.2], in three stages: addresses, partitions and Armed; tables; Active. Only what
// differs is sent.
#pragma once

#include "sm/partitions/pkeys.h"
#include "sm/subnet/problems.h"
#include "sm/sweep/settings.h"
#include "sm/sweep/switch_tables.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <unordered_map>
#include <vector>

namespace ib::sm {

class Setup final : public Work {
 public:
  Setup(Subnet& subnet, const Settings& settings, Problems& problems);

  // Nothing that ports and switches were told before counts: another manager has been there, or
  // this one is new.
  void forget();
  // `tables`: they may have to change. Those for unicast are filled again, or only stale ways
  // are renewed.
  struct Plan {
    const Graph* graph = nullptr;
    const Engine* engine = nullptr;
    const std::vector<std::uint32_t>* node_of = nullptr;
    const std::vector<MulticastGroup>* groups = nullptr;
    const std::vector<std::uint32_t>* ports = nullptr;  // that may have to change; else all
    const StaleWays* stale = nullptr;
    bool tables = true;
    bool linear_anew = true;
    bool has_looked = true;  // else only groups are others
  };
  void begin(const Plan& plan);
  bool is_done() const { return run_.stage == Stage::Done; }
  // Of the last run: ports that did not take what they were to, and ports that may have changed
  // since they were read.
  const std::vector<std::uint32_t>& failed() const { return failed_; }
  const std::vector<std::uint32_t>& doubtful() const { return doubtful_; }

  std::optional<Request> next() override;
  void on_answer(const Request& request, const Answer* answer) override;

 private:
  enum class Stage : std::uint8_t { Addresses, Tables, Active, Done };
  std::size_t places() const;  // of the stage
  void visit(std::uint32_t place);
  void visit_port(std::uint32_t index);
  void visit_pkeys(std::uint32_t index);
  void visit_switch(std::uint32_t index);
  void visit_enforcement(std::uint32_t index);
  void set(std::uint32_t port, std::uint16_t attribute, std::uint32_t modifier,
           const mad::SmpData& data);
  void set_pkey_blocks(std::uint32_t port, std::uint32_t modifier_base,
                       const std::vector<std::uint16_t>& before,
                       const std::vector<std::uint16_t>& after);
  void take_answer(const Request& request, const mad::SmpData& data);
  void on_failure(const Request& request, const Answer* answer);

  Subnet& subnet_;
  const Settings& settings_;
  Problems& problems_;
  std::optional<Pkeys> pkeys_;
  SwitchTables tables_;
  Plan plan_;
  struct {
    Stage stage = Stage::Done;
    std::uint32_t next = 0;  // place in the stage
    std::uint32_t open = 0;  // requests that wait for an answer
    std::deque<Request> ready{};
  } run_;
  std::vector<std::uint32_t> failed_, doubtful_;
  std::vector<bool> is_registered_;  // by port: its clients were told of this manager
  // P_Keys of ports of switches, as they were written.
  std::unordered_map<std::uint32_t, std::vector<std::uint16_t>> enforced_;
};

}  // namespace ib::sm
