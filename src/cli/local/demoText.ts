/** What the demo says at its end: the way from here to the hosted service. */
export const DEMO_NEXT = `The same code trains a large model on the hosted service. Change the address, the model and the learning rate:

  tinker-rx local                        # this service, to try your own program against
  tinker-rx auth login                   # or: export TINKER_API_KEY=tml-…  (unset TINKER_BASE_URL)
  tinker-rx model list
  tinker-rx train chats.jsonl --model Qwen/Qwen3-8B --dashboard

In TypeScript the run above is:

  const service = new ServiceClient();   // TINKER_API_KEY, TINKER_BASE_URL
  const trainer = await service.createLoraTrainingClient({ baseModel, rank: 16 });
  fromConversations('questions.jsonl').pipe(
    repeatEpochs({ epochs: 60 }),
    toDatums(await trainer.getRenderer()),
    batch({ size: 20 }),
    train(trainer, { loss: 'cross_entropy', adam: { learningRate: 0.01 } }),
  ).subscribe((step) => console.log(step.index, step.loss));
`;
