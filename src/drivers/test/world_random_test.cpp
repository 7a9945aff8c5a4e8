// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Random schedules of processes that come, open, create, destroy, make errors, end and are killed
// at any point, while HCAs come and go, hosts sleep, partitions, ports and drivers change. Virtual
// time. client_model_test.h has the promises to a client; at the end every request has been
// answered once and nothing is left.
//
// A failing seed is printed with the command that repeats it, also when it ends in an assertion or
// a report of a sanitizer. More seeds than the default: SOFTIB_SEEDS=10000.
#include "drivers/test/random_processes_test.h"
#include "drivers/test/repeat_command_test.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace ib::drivers::test {
namespace {

class Schedule : private RandomProcesses {
 public:
  explicit Schedule(unsigned seed) : RandomProcesses(seed) {}

  void step() {
    struct Kind {
      unsigned often;
      void (Schedule::*what)();
    };
    static constexpr Kind kSteps[] = {
        {44, &Schedule::ask_hca},       {7, &Schedule::ask_root},
        {8, &Schedule::populate},       {4, &Schedule::connect_pair},
        {3, &Schedule::begin_process},  {2, &Schedule::end_process},
        {2, &Schedule::kill_process},   {4, &Schedule::open_file},
        {2, &Schedule::close_file},     {3, &Schedule::cancel_request},
        {6, &Schedule::enter_or_leave}, {3, &Schedule::change_hca},
        {2, &Schedule::change_power},   {2, &Schedule::change_partition},
        {1, &Schedule::change_port},    {2, &Schedule::change_driver},
        {2, &Schedule::change_habits},  {2, &Schedule::finish_slow},
        {7, &Schedule::pass_time},
    };
    unsigned all = 0;
    for (const Kind& kind : kSteps) all += kind.often;
    unsigned dice = pick(all);
    for (const Kind& kind : kSteps) {
      if (dice < kind.often) {
        (this->*kind.what)();
        break;
      }
      dice -= kind.often;
    }
    sessions_.reap();
  }

  // Drivers behave and clients let go: then every request must end.
  void finish() {
    drivers_.habits = {};
    const unsigned dice = pick(4);
    if (dice == 0) set_power("", control::PowerState::Shutdown);
    if (dice == 1) answer_everything();
    if (dice == 2) run(std::chrono::milliseconds(pick(10)));
    for (const auto& client : sessions_.clients) {
      if (client.get() == tool_ || !client->is_open()) continue;
      pick(2) == 0 ? end(*client) : kill(*client);
    }
    memory_.leave_all();
    settle();
    EXPECT_EQ(sessions_.clients.size(), 1u) << "a connection does not end";
    if (dice != 0) take_everything_out();
    sessions_.end(*tool_);
    settle();
    check_nothing_left();
  }

 private:
  // Long enough for all waits with a time: retries of peers, deadlines of drivers.
  void settle() {
    for (int i = 0; i < 8; ++i) {
      while (drivers_.finish_slow()) {}
      run(i < 4 ? Duration(std::chrono::milliseconds(5)) : Duration(std::chrono::seconds(2)));
      sessions_.reap();
    }
  }

  // --- the device tree ---

  template <class In>
  void ask_tool(Code code, const In& in, Sessions::Then then = {}) {
    if (has_room(*tool_)) {
      sessions_.send(*tool_, *tool_->zero, {code}, bytes_of(in), std::move(then));
    }
  }
  fabric::Node& some_node() { return bench_.fabric.nodes()[pick(2)]; }
  fabric::Hca& some_hca(fabric::Node& node) {
    return node.hcas[pick(static_cast<unsigned>(node.hcas.size()))];
  }

  void change_hca() {
    fabric::Node& node = some_node();
    const unsigned dice = pick(8);
    const bool make = node.hcas.size() < 3 && dice == 0;
    fabric::Hca& hca = some_hca(node);
    change_hca(node, make ? "softib" + std::to_string(node.hcas.size()) : hca.name,
               dice < 4   ? control::HcaAction::Add
               : dice < 6 ? control::HcaAction::Remove
                          : control::HcaAction::Eject,
               hca);
  }
  void change_hca(fabric::Node& node, std::string_view name, control::HcaAction action,
                  const fabric::Hca& hca, Sessions::Then then = {}) {
    control::ChangeHcaIn in;
    put_text(in.node, node.name);
    put_text(in.ca, name);
    in.action = action;
    if (action == control::HcaAction::Eject) {
      sessions_.for_files_of(hca, [](const Client&, File& file) { file.pulled = true; });
      ++pulling_[&hca];  // it can be opened until its drivers have the removal
      then = [this, &hca](const io::Irp&) { --pulling_[&hca]; };
    }
    if (action == control::HcaAction::Remove && !then) {
      then = [this, &hca](const io::Irp& irp) {
        if (irp.status == Status::Ok) expect_unused(hca);
      };
    }
    ask_tool(Code::ChangeHca, in, std::move(then));
  }
  // A removal of an HCA in use must have been refused.
  void expect_unused(const fabric::Hca& hca) {
    sessions_.for_files_of(hca, [](const Client& client, const File& file) {
      EXPECT_TRUE(file.pulled || file.closing() || !client.is_open())
          << "an HCA was removed although pid " << client.who.pid << " uses it";
    });
  }
  void change_power() {
    static constexpr const char* kNodes[] = {"", "node0", "node1"};
    // Awake more often than not, since a sleeping host does little else.
    set_power(kNodes[pick(3)], pick(3) == 0 ? static_cast<control::PowerState>(1 + pick(2))
                                            : control::PowerState::Working);
  }
  void set_power(const char* node, control::PowerState state) {
    control::SetPowerIn in;
    put_text(in.node, node);
    in.state = state;
    ask_tool(Code::SetPower, in);
  }
  void change_partition() {
    control::ChangePartitionIn in;
    fabric::Node& node = some_node();
    put_text(in.node, node.name);
    put_text(in.ca, some_hca(node).name);
    in.port = 1 + pick(2);
    const unsigned which = pick(3);
    in.pkey = static_cast<std::uint16_t>(0x8001 + which);
    in.remove = pick(2) == 0;
    put_text(in.name, (pick(3) == 0 ? "e" : "i") + std::to_string(which));
    // Adding and removing partitions is valid in every state of the HCA.
    ask_tool(Code::ChangePartition, in,
             [](const io::Irp& irp) { EXPECT_NE(irp.status, Status::InvalidState) << irp.reason; });
  }
  void change_port() {
    control::SetPortIn in;
    fabric::Node& node = some_node();
    put_text(in.node, node.name);
    put_text(in.ca, some_hca(node).name);
    in.port = 1 + pick(2);
    in.up = pick(2);
    ask_tool(Code::SetPort, in);
  }
  void change_driver() {
    static constexpr const char* kNames[] = {ChildDrivers::kFunction,
                                             ChildDrivers::kFilter,
                                             ChildDrivers::kFunction,
                                             ChildDrivers::kFilter,
                                             "ib_bus",
                                             "soft_hca"};
    change_driver(kNames[pick(6)], pick(2) == 0, {});
  }
  void change_driver(const char* name, bool unload, Sessions::Then then) {
    control::ChangeDriverIn in;
    put_text(in.name, name);
    in.unload = unload ? 1 : 0;
    ask_tool(Code::ChangeDriver, in, std::move(then));
  }
  void change_habits() {
    ChildDrivers::Habits& habits = drivers_.habits;
    habits = {};
    unsigned* const all[] = {&habits.no_module, &habits.refuses_entry, &habits.refuses_start,
                             &habits.vetoes,    &habits.fails_power,   &habits.is_slow};
    for (unsigned* habit : all) *habit = pick(3) == 0 ? pick(6) : 0;
  }
  void finish_slow() { (void)drivers_.finish_slow(); }

  // --- the end ---

  void wake_all() {
    set_power("", control::PowerState::Working);
    for (const fabric::Node& node : bench_.fabric.nodes()) {
      set_power(node.name.c_str(), control::PowerState::Working);
    }
  }
  // All hosts are awake and no poster is inside a request: only waits for events remain.
  void answer_everything() {
    memory_.leave_all();
    wake_all();
    settle();
    for (const auto& client : sessions_.clients) {
      for (const Sessions::Flight& flight : client->flights) {
        EXPECT_EQ(flight.shape.code, Code::WaitEvent)
            << "request " << flight.irp.code << " is not answered";
      }
    }
  }
  // No client uses anything: no removal and no unload may be refused. This also shows that no
  // action of the tree is stuck.
  void take_everything_out() {
    wake_all();
    settle();
    // The request looks at all devices first.
    change_driver("missing", false, [](const io::Irp& irp) {
      EXPECT_EQ(irp.status, Status::NotFound) << irp.reason;
    });
    const auto gone = [this](const io::Irp& irp) {
      EXPECT_TRUE(irp.status == Status::Ok || irp.status == Status::NotFound) << irp.reason;
      ++taken_out_;
    };
    int asked = 0;
    for (fabric::Node& node : bench_.fabric.nodes()) {
      for (fabric::Hca& hca : node.hcas) {
        change_hca(node, hca.name, control::HcaAction::Remove, hca, gone);
        ++asked;
      }
    }
    settle();
    for (const char* driver :
         {ChildDrivers::kFilter, ChildDrivers::kFunction, "ib_bus", "soft_hca"}) {
      change_driver(driver, true, gone);
      ++asked;
      settle();
    }
    EXPECT_EQ(taken_out_, asked) << bench_.tree->devices_json();
    EXPECT_EQ(drivers_.devices, 0u);
    EXPECT_EQ(drivers_.modules, 0u);
  }

  void check_nothing_left() {
    EXPECT_EQ(sessions_.started, sessions_.ended) << "requests that were never answered";
    EXPECT_TRUE(sessions_.clients.empty());
    Core& core = bench_.core();
    EXPECT_TRUE(core.sessions.empty());
    EXPECT_EQ(bench_.objects(), 0u);
    EXPECT_EQ(core.memory.heap().used(), 0u);
    for (const Counts& counts : core.counts) {
      for (const std::uint32_t count : counts) EXPECT_EQ(count, 0u);
    }
    EXPECT_EQ(std::count(core.by_slot.begin(), core.by_slot.end(), nullptr),
              static_cast<std::ptrdiff_t>(core.by_slot.size()));
    EXPECT_EQ(core.later.waiting_for_posters(), 0u);
    EXPECT_EQ(FakeHost::open_handles, 0);
    memory_.expect_nothing_to_find();
    EXPECT_NE(bench_.tree->devices_json().find("\"leaving\": []"), std::string::npos)
        << bench_.tree->devices_json();
    if (testing::Test::HasFailure()) std::fputs(bench_.trace().c_str(), stderr);
  }

  int taken_out_ = 0;
};

void run(unsigned seed) {
  constexpr int kSteps = 120;
  Schedule schedule(seed);
  for (int i = 0; i < kSteps; ++i) schedule.step();
  schedule.finish();
}

TEST(WorldRandom, EverythingEndsAndNothingIsLeft) {
  constexpr unsigned kSeeds = IB_ADDRESS_SANITIZER != 0 ? 500 : 6000;
  constexpr unsigned kLeakCheck = 100;   // seeds between two
  constexpr unsigned kMostSeconds = 60;  // of one seed, which takes milliseconds
  const unsigned first = number_from("SOFTIB_FIRST_SEED", 1);
  const unsigned seeds = number_from("SOFTIB_SEEDS", kSeeds);
  print_command_at_death();
  unsigned clean = first;
  for (unsigned seed = first; seed - first < seeds && !HasFailure(); ++seed) {
    set_repeat_command(seed, "WorldRandom.*");
    SCOPED_TRACE(repeat_command.data());
    ::alarm(kMostSeconds);
    run(seed);
    if (seed - clean < kLeakCheck && seed - first + 1 < seeds) continue;
    look_for_leaks(clean, seed);
    clean = seed + 1;
  }
  ::alarm(0);
  repeat_command = {};
}

}  // namespace
}  // namespace ib::drivers::test
